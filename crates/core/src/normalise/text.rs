//! What every kind of value needs: invisible characters gone, digits of any script read, emptiness in disguise recognised.

use super::turkish::fold;
use unicode_normalization::UnicodeNormalization;

/// General category Cf: direction marks, zero-width spaces, soft hyphens that copying from chats brings along.
pub(super) fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
        | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}'
        | '\u{e0020}'..='\u{e007f}')
}

/// NFKC without format characters: for values whose look does not matter (phone, e-mail), not for names.
pub(super) fn plain(text: &str) -> String {
    text.nfkc().filter(|c| !is_format(*c)).collect()
}

/// The zeros of the scripts that write numbers with their own digits; each is followed by its 1 to 9. (What NFKC turns into
/// ASCII itself, such as full-width digits, is not listed.)
const ZEROS: &[char] = &[
    '\u{660}', '\u{6f0}', '\u{7c0}', '\u{966}', '\u{9e6}', '\u{a66}', '\u{ae6}', '\u{b66}',
    '\u{be6}', '\u{c66}', '\u{ce6}', '\u{d66}', '\u{de6}', '\u{e50}', '\u{ed0}', '\u{f20}',
    '\u{1040}', '\u{1090}', '\u{17e0}', '\u{1810}', '\u{1946}', '\u{19d0}', '\u{1a80}', '\u{1a90}',
    '\u{1b50}', '\u{1bb0}', '\u{1c40}', '\u{1c50}', '\u{a620}', '\u{a8d0}', '\u{a900}', '\u{a9d0}',
    '\u{a9f0}', '\u{aa50}', '\u{abf0}',
];

/// The character, or the ASCII digit of its decimal value.
pub(super) fn ascii_digit(c: char) -> char {
    ZEROS
        .iter()
        .filter_map(|zero| u32::from(c).checked_sub(u32::from(*zero)))
        .find_map(|value| char::from_digit(value, 10))
        .unwrap_or(c)
}

/// Whether a value says nothing: empty, only punctuation, "yok" (Turkish: there is none).
pub(super) fn is_blank(value: &str) -> bool {
    let value = value.trim();
    !value.chars().any(char::is_alphanumeric) && !value.chars().any(is_emoji_like)
        || (value.len() <= 8 && fold(value) == "yok")
}

/// Symbols outside the basic plane; a message of one heart says something.
fn is_emoji_like(c: char) -> bool {
    matches!(c, '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1ffff}')
}

/// As [`is_blank`], for values that cannot be words: also what programs write for nothing.
pub(super) fn is_blank_strictly(value: &str) -> bool {
    is_blank(value)
        || matches!(
            value.trim().to_ascii_lowercase().as_str(),
            "0" | "null" | "none" | "undefined" | "n/a" | "nan"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_any_script_are_read() {
        for digits in [
            "٠١٢٣٤٥٦٧٨٩",
            "۰۱۲۳۴۵۶۷۸۹",
            "０１２３４５６７８９",
            "०१२३४५६७८९",
            "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗",
        ] {
            let read: String = plain(digits).chars().map(ascii_digit).collect();
            assert_eq!(read, "0123456789", "{digits}");
        }
        assert_eq!(ascii_digit('x'), 'x');
        assert_eq!(
            ascii_digit('\u{66a}'),
            '\u{66a}',
            "what follows the nine is not a digit"
        );
    }

    #[test]
    fn emptiness_is_recognised_in_disguise() {
        for value in [
            "", " ", "-", "--", ".", "yok", "YOK", "Yok", "\u{200b}", "…",
        ] {
            assert!(is_blank(value), "{value:?}");
        }
        for value in ["a", "0", "yoktur", "❤️", "👍", "ş", "م"] {
            assert!(!is_blank(value), "{value:?}");
        }
        for value in ["0", "null", "N/A", "-"] {
            assert!(is_blank_strictly(value), "{value:?}");
        }
    }
}
