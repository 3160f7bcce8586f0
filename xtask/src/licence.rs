//! Licence expressions (SPDX): is there a way to take the package under licences we allow?

/// Whether an expression (`MIT OR (Apache-2.0 AND ISC)`) can be met with the allowed licences. Old manifests write `/` for `OR`.
pub(crate) fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader {
        words: &words,
        allowed,
    };
    let verdict = reader.any_of();
    verdict == Some(true) && reader.words.is_empty()
}

/// Reads an expression from the front; `None`: broken.
struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a [String],
}

impl Reader<'_> {
    fn any_of(&mut self) -> Option<bool> {
        let mut verdict = self.all_of()?;
        while self.take("OR") {
            verdict |= self.all_of()?;
        }
        Some(verdict)
    }

    fn all_of(&mut self) -> Option<bool> {
        let mut verdict = self.one()?;
        while self.take("AND") {
            verdict &= self.one()?;
        }
        Some(verdict)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let verdict = self.any_of()?;
            return self.take(")").then_some(verdict);
        }
        let mut name = self.word()?.to_owned();
        // A licence with an exception is another licence: it must stand in the list as such.
        if self.take("WITH") {
            name = format!("{name} WITH {}", self.word()?);
        }
        Some(self.allowed.contains(&name))
    }

    fn word(&mut self) -> Option<&str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, expected: bool) {
        let allowed = ["MIT", "Apache-2.0", "ISC"].map(str::to_owned);
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }

    #[test]
    fn an_expression_is_met_when_one_choice_of_it_is_allowed_throughout() {
        check("MIT", true);
        check("GPL-3.0-only", false);
        check("GPL-3.0-only OR MIT", true);
        check("MIT AND GPL-3.0-only", false);
        check("(GPL-3.0-only OR MIT) AND ISC", true);
        check("MIT/Apache-2.0", true);
        check("GPL-2.0 OR MIT AND BSD-4-Clause", false);
        check("Apache-2.0 WITH LLVM-exception", false);
        check("Apache-2.0 WITH LLVM-exception OR MIT", true);
    }

    #[test]
    fn a_broken_expression_is_met_by_nothing() {
        for text in ["", "MIT OR", "(MIT", "MIT ISC", "MIT WITH", ")"] {
            check(text, false);
        }
    }
}
