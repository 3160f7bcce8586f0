//! Names: cleaned, never "corrected" (phone-and-name.md 3). The full name is the truth; its parts are a guess for fields that
//! want parts, and letter case stays as given: `ISMAIL` may be `İsmail` or `Ismail`, nobody can tell.

use super::text::is_format;
use super::turkish::fold;
use encoding_rs::{Encoding, WINDOWS_1252, WINDOWS_1254};
use unicode_normalization::UnicodeNormalization;

/// Words around a name that are no part of it, folded.
const TITLES: &[&str] = &[
    "av", "dr", "prof", "doc", "op", "uzm", "dt", "ecz", "muh", "sn", "sayin", "bey", "hanim",
    "mr", "mrs", "ms",
];

/// A name in NFC, without control and format characters and with single spaces; broken letters repaired if the whole text
/// says how. True if it was.
pub(super) fn clean(raw: &str) -> (String, bool) {
    let composed: String = raw.nfc().collect();
    let repaired = repair_mojibake(&composed);
    let is_repaired = repaired.is_some();
    let visible: String = repaired
        .unwrap_or(composed)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .filter(|c| !is_format(*c) || is_joiner(*c))
        .collect();
    let words: Vec<_> = visible.split_whitespace().collect();
    (words.join(" "), is_repaired)
}

/// Persian names are spelled with the one, emoji with the other.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Whether a text has anything of a name in it; a phone number in the name box has not.
pub(super) fn is_plausible(name: &str) -> bool {
    name.chars().any(char::is_alphabetic)
}

/// First and last name, derived: the last word is the family name. Titles, numbers and emoji are no words. (Two surnames and
/// two given names are usual, so it stays a guess.)
pub(super) fn split(full: &str) -> (Option<String>, Option<String>) {
    let mut words: Vec<_> = full
        .split(' ')
        .filter(|word| is_plausible(word) && !is_title(word))
        .collect();
    let last = if words.len() > 1 { words.pop() } else { None };
    let first = (!words.is_empty()).then(|| words.join(" "));
    (first, last.map(str::to_owned))
}

fn is_title(word: &str) -> bool {
    let word = fold(word.trim_end_matches(['.', ',']));
    TITLES.contains(&word.as_str())
}

/// Undoes one wrong decoding, if the whole text round-trips.
pub(super) fn repair_mojibake(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    utf8_read_as(WINDOWS_1254, text)
        .or_else(|| utf8_read_as(WINDOWS_1252, text))
        .or_else(|| windows_1254_read_as_latin_1(text))
}

/// `Ã‡aÄŸrÄ±` → `Çağrı`. A text of real letters is practically never valid UTF-8 in a one-byte encoding.
fn utf8_read_as(encoding: &'static Encoding, text: &str) -> Option<String> {
    let (bytes, _, has_unmappable) = encoding.encode(text);
    if has_unmappable {
        return None;
    }
    let repaired = std::str::from_utf8(&bytes).ok()?;
    (!repaired.chars().any(char::is_control)).then(|| repaired.to_owned())
}

/// `Çaðrý` → `Çağrı`. Every text round-trips here, and `ý` alone is Czech: so only if all accented letters are those a Turkish
/// text has after this accident, and one of them is no letter of a neighbour (`Þ`, `ð`).
fn windows_1254_read_as_latin_1(text: &str) -> Option<String> {
    let is_sign = |c: char| matches!(c, 'Þ' | 'þ' | 'Ð' | 'ð');
    let is_usual = |c: char| {
        c.is_ascii()
            || !c.is_alphabetic()
            || matches!(
                c,
                'Ý' | 'ý'
                    | 'Ç'
                    | 'ç'
                    | 'Ö'
                    | 'ö'
                    | 'Ü'
                    | 'ü'
                    | 'Â'
                    | 'â'
                    | 'Î'
                    | 'î'
                    | 'Û'
                    | 'û'
            )
    };
    let is_accident = text.chars().any(is_sign) && text.chars().all(|c| is_sign(c) || is_usual(c));
    is_accident.then(|| {
        text.chars()
            .map(|c| match c {
                'Þ' => 'Ş',
                'þ' => 'ş',
                'Ð' => 'Ğ',
                'ð' => 'ğ',
                'Ý' => 'İ',
                'ý' => 'ı',
                other => other,
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_cleaned_not_corrected() {
        for (raw, wanted) in [
            ("  Ayşe \u{a0} Yılmaz\n", "Ayşe Yılmaz"),
            ("s\u{327}u\u{308}kru\u{308}", "şükrü"),
            ("\u{200e}İREM ŞAHİN\u{feff}", "İREM ŞAHİN"),
            ("ISMAIL", "ISMAIL"),
            ("Nguyễn", "Nguyễn"),
            ("Дмитрий", "Дмитрий"),
            ("فاطمه\u{200c}زهرا", "فاطمه\u{200c}زهرا"),
            ("Jiří Novotný", "Jiří Novotný"),
            ("Guðrún Þórsdóttir", "Guðrún Þórsdóttir"),
            ("Ece 🌸 Er", "Ece 🌸 Er"),
        ] {
            assert_eq!(clean(raw), (wanted.to_owned(), false), "{raw:?}");
        }
    }

    #[test]
    fn mojibake_is_repaired_where_the_whole_text_says_how() {
        for (raw, wanted) in [
            ("Ã‡aÄŸrÄ±", "Çağrı"),
            ("ÅžÃ¼krÃ¼ IÅŸÄ±k", "Şükrü Işık"),
            ("Å\u{9e}Ä°RÄ°N", "ŞİRİN"),
            ("Çaðrý Þahin", "Çağrı Şahin"),
            ("ÝREM ÞAHÝN", "İREM ŞAHİN"),
        ] {
            assert_eq!(clean(raw), (wanted.to_owned(), true), "{raw:?}");
        }
        for raw in ["Çağrı", "Ã‡aÄŸrı", "Yýlmaz", "Ã"] {
            assert!(!clean(raw).1, "{raw:?}");
        }
    }

    #[test]
    fn the_last_word_is_the_family_name() {
        for (full, first, last) in [
            ("Ayşe Yılmaz", "Ayşe", "Yılmaz"),
            ("Ayşe Yılmaz Demir", "Ayşe Yılmaz", "Demir"),
            ("Mehmet Ali Can", "Mehmet Ali", "Can"),
            ("Ayşe Yılmaz-Demir", "Ayşe", "Yılmaz-Demir"),
            ("Av. Ece Er", "Ece", "Er"),
            ("DR. ECE ER HANIM", "ECE", "ER"),
            ("Ece 🌸 Er 🌸", "Ece", "Er"),
            ("Ece", "Ece", ""),
            ("Ece Er 05321234567", "Ece", "Er"),
            ("05321234567", "", ""),
            ("Dr.", "", ""),
        ] {
            let some = |s: &str| (!s.is_empty()).then(|| s.to_owned());
            assert_eq!(split(full), (some(first), some(last)), "{full}");
        }
    }

    proptest! {
        #[test]
        fn what_was_broken_by_wrong_decoding_comes_back(
            name in "[A-Za-zçÇğĞıİöÖşŞüÜ]{0,12} [A-Za-z]{0,3}[çÇğĞıİöÖşŞüÜ][a-z]{0,9}"
        ) {
            let (broken, had_errors) = WINDOWS_1252.decode_without_bom_handling(name.as_bytes());
            prop_assert!(!had_errors);
            prop_assert_eq!(repair_mojibake(&broken), Some(name.clone()));
            let (broken, had_errors) = WINDOWS_1254.decode_without_bom_handling(name.as_bytes());
            prop_assert!(!had_errors);
            prop_assert_eq!(repair_mojibake(&broken), Some(name));
        }

        #[test]
        fn turkish_names_are_left_alone(name in "[A-Za-zçÇğĞıİöÖşŞüÜâÂîÎûÛ ]{0,30}") {
            prop_assert_eq!(repair_mojibake(&name), None);
        }

        #[test]
        fn cleaning_any_text_is_stable(raw in any::<String>()) {
            let (once, is_repaired) = clean(&raw);
            if !is_repaired {
                prop_assert_eq!(clean(&once), (once.clone(), false));
            }
            let _ = split(&once);
        }
    }
}
