//! Phone numbers: what people and forms send, to E.164 (phone-and-name.md 1 and 2).
//!
//! Never pads, never cuts, never forces a country on a number that names its own: what cannot be read is kept as it is, for a
//! person to look at. The numbering plan's opinion is a flag, because the plan's copy in the library lags behind reality.

use super::text::{ascii_digit, is_blank_strictly, plain};
use crate::lead::{Phone, PhoneKind};
use rlibphonenumber::{
    NumberLengthType, PHONE_NUMBER_UTIL, PhoneNumber, PhoneNumberFormat, PhoneNumberType, Region,
};
use std::sync::LazyLock;

/// Longer values are not phone numbers; two numbers with words between them have room.
const MAX_RAW_BYTES: usize = 512;
/// Country code and number have at most 15 digits in E.164; a trunk zero and `00` may come on top.
const MAX_DIGITS: usize = 18;
/// Words between two numbers.
const BETWEEN: &[&str] = &["ve", "veya", "yada", "or", "and"];
/// Words before an extension, in folded letters; the library knows only the foreign ones.
const EXTENSION: &[&str] = &[
    "dahili",
    "dahilî",
    "dah",
    "iç hat",
    "ic hat",
    "extension",
    "ext",
    "x",
    "#",
];

/// What a field with a phone number says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// The numbers, primary first; empty if the field says there is none. One that could not be read has no E.164.
    pub(super) phones: Vec<Phone>,
    /// Codes of what is worth telling: `missing`, `unreadable`, `repaired`, `suspicious`, `several`, `not_valid`.
    pub(super) notes: Vec<&'static str>,
}

/// Loads the numbering plans (0.15 s), so that the first lead does not wait for them.
pub fn warm() {
    LazyLock::force(&PHONE_NUMBER_UTIL);
}

/// Reads a field. `region` is the country that a number without country code belongs to; if it is unknown, such numbers are
/// unreadable, because matching them against country codes invents numbers (H16).
pub(super) fn read(raw: &str, region: &str) -> Reading {
    if is_blank_strictly(raw) {
        return Reading {
            phones: Vec::new(),
            notes: vec!["missing"],
        };
    }
    let region = Region::from_code(region).ok();
    let mut notes = Vec::new();
    let numbers = if raw.trim().len() > MAX_RAW_BYTES {
        Vec::new()
    } else {
        let mut text = letters_for_reading(raw.trim());
        if let Some(digits) = undo_spreadsheet(&text) {
            text = digits;
            notes.push("repaired");
        }
        let parts = split(&text, region);
        if parts.len() > 1 {
            notes.push("several");
        }
        parts.iter().map(|part| read_one(part, region)).collect()
    };
    judge(raw, numbers, notes)
}

/// Puts readable numbers first, in their order; drops unreadable ones beside them.
fn judge(raw: &str, mut numbers: Vec<Number>, mut notes: Vec<&'static str>) -> Reading {
    let mut note = |code| {
        if !notes.contains(&code) {
            notes.push(code);
        }
    };
    if numbers.iter().any(|n| n.is_suspicious) {
        note("suspicious");
    }
    numbers.retain(|n| n.e164.is_some());
    if numbers.iter().any(|n| n.is_repaired) {
        note("repaired");
    }
    let mut phones: Vec<_> = numbers.into_iter().map(|n| n.into_phone(raw)).collect();
    match phones.first() {
        Some(first) if !first.valid => note("not_valid"),
        Some(_) => {}
        None => {
            note("unreadable");
            phones.push(Number::default().into_phone(raw));
        }
    }
    Reading { phones, notes }
}

/// One number.
#[derive(Debug, Default)]
struct Number {
    e164: Option<String>,
    kind: Option<PhoneKind>,
    is_valid: bool,
    extension: Option<String>,
    is_repaired: bool,
    is_suspicious: bool,
}

impl Number {
    fn into_phone(self, raw: &str) -> Phone {
        Phone {
            raw: raw.to_owned(),
            e164: self.e164,
            kind: self.kind.unwrap_or(PhoneKind::Unknown),
            valid: self.is_valid,
            extension: self.extension,
        }
    }
}

/// Lower case without Turkish or typographic variety, digits in ASCII.
fn letters_for_reading(raw: &str) -> String {
    plain(raw)
        .chars()
        .map(|c| match ascii_digit(c) {
            'İ' | 'I' | 'ı' => 'i',
            '\n' | '\r' => ';',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            other => other.to_lowercase().next().unwrap_or(other),
        })
        .collect()
}

/// `5.321234567e+9` → `5321234567`, if every digit is still there; `5321234567.0` too.
fn undo_spreadsheet(text: &str) -> Option<String> {
    let text = text.trim();
    let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if let Some(whole) = text.strip_suffix(".0") {
        return (all_digits(whole) && whole.len() >= 10).then(|| whole.to_owned());
    }
    let (mantissa, exponent) = text.split_once('e')?;
    let exponent: usize = exponent
        .strip_prefix('+')
        .unwrap_or(exponent)
        .parse()
        .ok()?;
    let digits = mantissa.replacen(['.', ','], "", 1);
    (all_digits(&digits) && digits.len() == exponent.checked_add(1)?).then_some(digits)
}

fn count_digits(text: &str) -> usize {
    text.bytes().filter(u8::is_ascii_digit).count()
}

/// Parts a field into numbers. Separators also stand inside numbers (`0532/123 45 67`), so they part only where a whole
/// number (10 digits) stands on one side.
fn split(text: &str, region: Option<Region>) -> Vec<String> {
    let words = text
        .split_whitespace()
        .map(|word| if BETWEEN.contains(&word) { ";" } else { word });
    let text = words.collect::<Vec<_>>().join(" ");
    let mut parts: Vec<String> = Vec::new();
    for part in text.split(['/', ',', ';', '|', '&']) {
        let is_extension = EXTENSION.iter().any(|w| part.trim_start().starts_with(w));
        match parts.last_mut() {
            Some(last) if is_extension && count_digits(part) < 7 => last.push_str(part),
            _ => parts.push(part.to_owned()),
        }
    }
    if !parts.iter().any(|part| count_digits(part) >= 10) {
        return vec![text];
    }
    parts
        .iter()
        .filter(|part| count_digits(part) >= 7)
        .flat_map(|part| split_in_two(part, region))
        .collect()
}

/// Parts `0532 123 45 67-0555 111 22 33` and `05321234567 05551112233`: where both sides are numbers by themselves.
fn split_in_two(text: &str, region: Option<Region>) -> Vec<String> {
    let whole = || vec![text.to_owned()];
    if count_digits(text) < 20 {
        return whole();
    }
    let is_number = |side: &str| count_digits(side) >= 10 && read_one(side, region).e164.is_some();
    text.char_indices()
        .filter(|(_, c)| matches!(c, '-' | ' '))
        .map(|(at, _)| (&text[..at], &text[at + 1..]))
        .find(|(left, right)| is_number(left) && is_number(right))
        .map_or_else(whole, |(left, right)| vec![left.into(), right.into()])
}

fn read_one(text: &str, region: Option<Region>) -> Number {
    let (body, extension) = take_extension(text);
    let Some(dialled) = dialled(body) else {
        return Number::default();
    };
    let read = resolve(&dialled, region);
    let unread = dialled.digits.trim_start_matches("00");
    let unread = unread.strip_prefix("90").unwrap_or(unread);
    let national = read.as_ref().map_or(unread, |r| &r.national);
    Number {
        is_suspicious: looks_made_up(national),
        is_repaired: dialled.is_repaired || read.as_ref().is_some_and(|r| r.is_repaired),
        kind: read.as_ref().map(|r| r.kind),
        is_valid: read.as_ref().is_some_and(|r| r.is_valid),
        e164: read.map(|r| r.e164),
        extension,
    }
}

/// Takes `dahili 12`, `ext. 12`, `(12)` off the end.
fn take_extension(text: &str) -> (&str, Option<String>) {
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '.' | ',' | ';'));
    let open = text.trim_end_matches([')', ' ']);
    let head = open.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &open[head.len()..];
    if !(1..=7).contains(&digits.len()) {
        return (text, None);
    }
    let before = head.trim_end_matches([' ', '.', ':', '-', '(', ',']);
    let body = match EXTENSION.iter().find_map(|word| before.strip_suffix(word)) {
        Some(body) if count_digits(body) >= 7 => body,
        _ if head.ends_with('(') && digits.len() <= 5 && count_digits(before) >= 10 => before,
        _ => return (text, None),
    };
    (body, Some(digits.to_owned()))
}

/// What would be dialled.
#[derive(Debug)]
struct Dialled {
    has_plus: bool,
    digits: String,
    is_repaired: bool,
}

/// Reads digits; words before and after them are dropped, between them they make the value unreadable. An `o` or `l` between
/// digits is read as the digit it looks like.
fn dialled(text: &str) -> Option<Dialled> {
    let start = text.find(|c: char| c == '+' || c.is_ascii_digit())?;
    let (has_plus, rest) = match text[start..].strip_prefix('+') {
        Some(rest) => (true, rest),
        None => (false, &text[start..]),
    };
    let mut digits = String::new();
    let mut is_repaired = false;
    for (at, c) in rest.char_indices() {
        let after = &rest[at + c.len_utf8()..];
        let before_is_letter = rest[..at].ends_with(char::is_alphabetic) && !is_repaired;
        match c {
            '0'..='9' => digits.push(c),
            'o' | 'l' | 'i' if !digits.is_empty() && !before_is_letter && digit_follows(after) => {
                digits.push(if c == 'o' { '0' } else { '1' });
                is_repaired = true;
            }
            ' ' | '-' | '.' | '(' | ')' | '/' | '_' | ',' | '\'' | '*' | '~' => {}
            _ if c.is_whitespace() => {}
            _ if count_digits(after) == 0 => break,
            _ => return None,
        }
    }
    (!digits.is_empty() && digits.len() <= MAX_DIGITS).then_some(Dialled {
        has_plus,
        digits,
        is_repaired,
    })
}

fn digit_follows(text: &str) -> bool {
    text.trim_start_matches(['o', 'l', 'i'])
        .starts_with(|c: char| c.is_ascii_digit())
}

/// A number that was read.
#[derive(Debug)]
struct Resolved {
    e164: String,
    national: String,
    kind: PhoneKind,
    is_valid: bool,
    is_repaired: bool,
}

fn resolve(dialled: &Dialled, region: Option<Region>) -> Option<Resolved> {
    let digits = dialled.digits.as_str();
    let is_turkish = region == Some(Region::TR);
    match (dialled.has_plus, digits.strip_prefix("00")) {
        // No country code begins with 0: the form's plus and a national number.
        (true, _) if digits.starts_with('0') && is_turkish => {
            turkish_national(digits).map(|r| Resolved {
                is_repaired: true,
                ..r
            })
        }
        (true, _) => international(digits),
        (false, Some(rest)) => international(rest),
        (false, None) if is_turkish => turkish_national(digits),
        (false, None) => by_library(digits, Some(region?)),
    }
}

/// Digits that begin with a country code. Forms that pre-fill +90 get the trunk zero behind it; one is dropped.
fn international(digits: &str) -> Option<Resolved> {
    digits
        .strip_prefix("90")
        .and_then(|national| turkish(national.strip_prefix('0').unwrap_or(national)))
        .or_else(|| by_library(&format!("+{digits}"), None))
}

/// Rule (5): by length alone, so that a lost or doubled digit is never made up for.
fn turkish_national(digits: &str) -> Option<Resolved> {
    let national = match (digits.len(), digits.as_bytes()) {
        (13, [b'9', b'0', b'0', ..]) => &digits[3..],
        (12, [b'9', b'0', ..]) => &digits[2..],
        (11, [b'0', ..]) => &digits[1..],
        (7 | 10, _) => digits,
        _ => return None,
    };
    turkish(national)
}

/// A subscriber number of 10 digits, or a company's 444 x xxx.
fn turkish(national: &str) -> Option<Resolved> {
    let is_company = national.len() == 7 && national.starts_with("444");
    let is_subscriber =
        national.len() == 10 && matches!(national.as_bytes()[0], b'2'..=b'5' | b'8');
    if !is_company && !is_subscriber {
        return None;
    }
    let e164 = format!("+90{national}");
    let number = PHONE_NUMBER_UTIL.parse(&e164, None).ok();
    let kind = match (number.as_ref().map(kind), national.as_bytes()[0]) {
        _ if is_company => PhoneKind::Company,
        (Some(kind), _) if kind != PhoneKind::Unknown => kind,
        (_, b'5') => PhoneKind::Mobile,
        (_, b'2'..=b'4') => PhoneKind::Fixed,
        _ => PhoneKind::Other,
    };
    Some(Resolved {
        e164,
        national: national.to_owned(),
        kind,
        is_valid: number.is_some_and(|n| PHONE_NUMBER_UTIL.is_valid_number(&n)),
        is_repaired: false,
    })
}

/// Everybody else's numbers, as the library reads them, if their length is possible and what it writes it reads the same.
fn by_library(text: &str, region: Option<Region>) -> Option<Resolved> {
    let number = PHONE_NUMBER_UTIL.parse(text, region).ok()?;
    let is_possible = matches!(
        PHONE_NUMBER_UTIL.is_possible_number_with_reason(&number),
        Ok(NumberLengthType::IsPossible)
    );
    let is_valid = PHONE_NUMBER_UTIL.is_valid_number(&number);
    // Turkish numbers have a rule of their own; the library is asked only for the odd ones (0900, 0800 with 13 digits).
    if !is_possible || (number.country_code == 90 && !is_valid) {
        return None;
    }
    let write = |n: &PhoneNumber| {
        PHONE_NUMBER_UTIL
            .format(n, PhoneNumberFormat::E164)
            .into_owned()
    };
    let e164 = write(&number);
    let again = PHONE_NUMBER_UTIL.parse(&e164, None).ok()?;
    (write(&again) == e164).then(|| Resolved {
        national: number.get_national_significant_number(),
        kind: kind(&number),
        is_valid,
        is_repaired: false,
        e164,
    })
}

fn kind(number: &PhoneNumber) -> PhoneKind {
    match PHONE_NUMBER_UTIL.get_number_type(number) {
        PhoneNumberType::Mobile => PhoneKind::Mobile,
        PhoneNumberType::FixedLine => PhoneKind::Fixed,
        // Where the plan does not part them (USA), nobody can tell.
        PhoneNumberType::FixedLineOrMobile | PhoneNumberType::Unknown => PhoneKind::Unknown,
        _ => PhoneKind::Other,
    }
}

/// What people type to get past a form; the numbering plan takes some of it for valid.
fn looks_made_up(national: &str) -> bool {
    let digits = national.as_bytes();
    let pairs_all = |test: fn(u8, u8) -> bool| digits.windows(2).all(|pair| test(pair[0], pair[1]));
    let is_up = |a: u8, b: u8| (a - b'0' + 1) % 10 == b - b'0';
    digits.len() >= 7
        && (pairs_all(|a, b| a == b)
            || pairs_all(is_up)
            || digits.iter().filter(|d| **d == b'0').count() >= 7)
}

#[cfg(test)]
mod tests;
