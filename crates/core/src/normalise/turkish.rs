//! Turkish letter case, which no locale-free function knows: `i`/`İ` and `ı`/`I` are two letters (phone-and-name.md 3).
//!
//! `"İREM".to_lowercase()` is `i` + U+0307 + `rem`, `"IŞIK".to_lowercase()` is `işik`. Never for e-mail addresses.

use unicode_normalization::UnicodeNormalization;

/// Lower case of Turkish text, in NFC.
pub fn tr_lower(text: &str) -> String {
    text.nfc()
        .map(|c| match c {
            'İ' => 'i',
            'I' => 'ı',
            other => other,
        })
        .collect::<String>()
        .to_lowercase()
}

/// Upper case of Turkish text, in NFC.
pub fn tr_upper(text: &str) -> String {
    text.nfc()
        .map(|c| match c {
            'i' => 'İ',
            'ı' => 'I',
            other => other,
        })
        .collect::<String>()
        .to_uppercase()
}

/// The letters for matching field names and words a form offers: `i ı İ I` are one, the marks of Latin letters are gone.
/// Never for display, and never for identity: it merges `Işık` with `İşik` (H3).
pub fn fold(text: &str) -> String {
    text.nfkd()
        .filter(|c| !matches!(c, '\u{300}'..='\u{36f}'))
        .map(|c| if matches!(c, 'I' | 'ı') { 'i' } else { c })
        .collect::<String>()
        .to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn case_follows_turkish() {
        for (upper, lower) in [
            ("IŞIK", "ışık"),
            ("İREM", "irem"),
            ("ÇAĞRI ÖZGÜR", "çağrı özgür"),
            ("DİYARBAKIR", "diyarbakır"),
        ] {
            assert_eq!(tr_lower(upper), lower);
            assert_eq!(tr_upper(lower), upper);
        }
        assert_eq!(tr_lower("I\u{307}REM"), "irem", "as macOS sends it");
        assert_eq!(tr_upper("s\u{327}"), "Ş");
    }

    #[test]
    fn fold_meets_what_people_type() {
        for (given, typed) in [
            ("Şükrü Çağrı", "Sukru Cagri"),
            ("IŞIK", "isik"),
            ("İ", "ı"),
            ("Hâlâ", "hala"),
            ("g\u{306}", "g"),
            ("ＡＤ", "ad"),
        ] {
            assert_eq!(fold(given), fold(typed));
        }
        assert_eq!(fold("İREM"), "irem");
    }

    proptest! {
        #[test]
        fn case_is_stable(text in any::<String>()) {
            let lower = tr_lower(&text);
            prop_assert_eq!(tr_lower(&lower), lower.clone());
            let folded = fold(&text);
            prop_assert_eq!(fold(&folded), folded);
        }

        #[test]
        fn turkish_letters_survive_the_round_trip(text in "[abcçdefgğhıijklmnoöprsştuüvyz ]{0,20}") {
            prop_assert_eq!(tr_lower(&tr_upper(&text)), text.clone());
            prop_assert_eq!(fold(&tr_upper(&text)), fold(&text));
            prop_assert!(fold(&text).is_ascii());
        }
    }
}
