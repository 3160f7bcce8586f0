//! E-mail addresses (phone-and-name.md 4): cleaned of what cannot belong to one, otherwise kept; slips are suggested to a
//! person, not rewritten. Turkish letter case is never applied: `INFO@` is `info@`.

use super::text::{is_blank_strictly, plain};
use super::turkish::fold;
use crate::lead::Email;

/// RFC 5321: 64 before the @, 254 in all.
const MAX_LOCAL_BYTES: usize = 64;
const MAX_ADDRESS_BYTES: usize = 254;
/// Longer values are not addresses.
const MAX_RAW_BYTES: usize = 1024;

/// What was meant, and mistyped domains. Only what is no provider's real domain.
const SLIPS: &[(&str, &str)] = &[
    (
        "gmail.com",
        "gmail.con gmail.co gmail.cm gmail.om gmail.comm gmail.cim gmail.com.tr gmail gmailcom gmial.com \
         gmai.com gamil.com gnail.com gmaill.com",
    ),
    (
        "hotmail.com",
        "hotmail hotmailcom hotmail.co hotmail.con hotmail.cm hotmal.com hotmial.com hotnail.com hormail.com",
    ),
    ("outlook.com", "outlok.com outlook.con outlook"),
    ("yahoo.com", "yahoo.con yaho.com"),
    ("icloud.com", "icloud.con iclod.com"),
    ("yandex.com", "yandex.con"),
];

/// Providers looked for behind a missing @.
const PROVIDERS: &[&str] = &[
    "gmail.com",
    "hotmail.com",
    "outlook.com",
    "yahoo.com",
    "icloud.com",
    "yandex.com",
];

/// Cyrillic letters, and below each the Latin one it looks like.
const CYRILLIC: &str = "авсеһіјкморѕтух";
const LATIN: &str = "abcehijkmopstyx";

fn latin_lookalike(c: char) -> Option<char> {
    CYRILLIC
        .chars()
        .zip(LATIN.chars())
        .find_map(|(cyrillic, latin)| (cyrillic == c).then_some(latin))
}

/// What a field with an e-mail address says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// The address; nothing if the field says there is none.
    pub(super) email: Option<Email>,
    /// Codes of what is worth telling: `missing`, `not_valid`, `repaired`, `suspicious`, `several`.
    pub(super) notes: Vec<&'static str>,
}

/// Reads a field.
pub(super) fn read(raw: &str) -> Reading {
    if is_blank_strictly(raw) {
        return Reading {
            email: None,
            notes: vec!["missing"],
        };
    }
    let mut notes = Vec::new();
    let (address, suggestion) = if raw.len() > MAX_RAW_BYTES {
        (None, None)
    } else {
        let candidates = candidates(raw);
        if candidates.len() > 1 {
            notes.push("several");
        }
        let candidate = candidates.into_iter().next().unwrap_or_default();
        judge(&candidate, &mut notes)
    };
    if address.is_none() {
        notes.push("not_valid");
    }
    Reading {
        email: Some(Email {
            raw: raw.to_owned(),
            address,
            suggestion,
        }),
        notes,
    }
}

/// Whether a text is an address as it stands.
pub(super) fn is_address(text: &str) -> bool {
    text.contains('@') && read(text).email.is_some_and(|e| e.address.is_some())
}

/// The key two spellings of one mailbox share: lower case by Unicode, which for addresses is right. Not a fold: `ışık@` and
/// `ISIK@` stay two people (H3).
pub fn matching_key(address: &str) -> String {
    address.to_lowercase()
}

/// The texts in a field that could each be an address, without the things people wrap around one.
fn candidates(raw: &str) -> Vec<String> {
    let text = plain(raw);
    let text = match (text.find('<'), text.rfind('>')) {
        (Some(open), Some(close)) if open < close => &text[open + 1..close],
        _ => text.trim(),
    };
    let pieces: Vec<_> = text
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '/' | '|'))
        .filter(|piece| piece.contains('@'))
        .collect();
    let is_whole = |piece: &&str| is_well_formed(unwrapped(piece));
    let whole: Vec<_> = pieces.iter().filter(|p| is_whole(p)).collect();
    match whole.as_slice() {
        // White space inside one address: `ece @ gmail . com`.
        [] => vec![unwrapped(&text.split_whitespace().collect::<String>()).to_owned()],
        several => several.iter().map(|p| unwrapped(p).to_owned()).collect(),
    }
}

fn unwrapped(text: &str) -> &str {
    let text = text.trim_matches(|c: char| {
        matches!(
            c,
            '.' | ',' | ';' | ':' | '"' | '\'' | '(' | ')' | '<' | '>'
        )
    });
    let has_prefix = |prefix: &str| {
        text.get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    ["mailto:", "www."]
        .iter()
        .find(|prefix| has_prefix(prefix))
        .map_or(text, |prefix| &text[prefix.len()..])
}

/// The address to write to, and what may have been meant instead.
fn judge(candidate: &str, notes: &mut Vec<&'static str>) -> (Option<String>, Option<String>) {
    let dotted = candidate.replace(['ı', 'İ'], "i");
    let address = with_lower_domain(&dotted);
    if !is_well_formed(&address) {
        return (None, suggest(&address));
    }
    if dotted != candidate {
        notes.push("repaired");
    }
    let suggestion = suggest(&address);
    if suggestion.is_some() {
        notes.push("suspicious");
    }
    (Some(address), suggestion)
}

fn with_lower_domain(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((local, domain)) => format!("{local}@{}", domain.to_lowercase()),
        None => address.to_owned(),
    }
}

/// The shape of an address that mail providers and CRMs take: ASCII before the @, a domain with a dot behind it (which may
/// be written in any one script).
fn is_well_formed(address: &str) -> bool {
    let Some((local, domain)) = address.split_once('@') else {
        return false;
    };
    let is_local = (1..=MAX_LOCAL_BYTES).contains(&local.len())
        && local
            .split('.')
            .all(|atom| !atom.is_empty() && atom.chars().all(is_local_char));
    let labels: Vec<_> = domain.split('.').collect();
    let is_domain = labels.len() >= 2
        && labels.iter().all(|label| is_label(label))
        && labels.last().is_some_and(|top| {
            top.chars().count() >= 2 && !top.chars().all(|c| c.is_ascii_digit())
        });
    address.len() <= MAX_ADDRESS_BYTES && is_local && is_domain
}

fn is_local_char(c: char) -> bool {
    // The dotless and dotted i are let through to be repaired by `judge`.
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || matches!(c, 'ı' | 'İ')
}

fn is_label(label: &str) -> bool {
    let letters = || label.chars().filter(|c| c.is_alphabetic());
    let is_mixed =
        letters().any(|c| c.is_ascii()) && letters().any(|c| latin_lookalike(c).is_some());
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.chars().all(|c| c.is_alphanumeric() || c == '-')
        && !is_mixed
}

/// A well-formed address that differs and was probably meant.
fn suggest(address: &str) -> Option<String> {
    let latin: String = address
        .chars()
        .map(|c| latin_lookalike(c).unwrap_or(c))
        .collect();
    // Only a whole address in disguise; a domain in Cyrillic is what it is.
    let mut meant = if latin.is_ascii() {
        latin
    } else {
        address.to_owned()
    };
    while meant.contains("@@") || meant.contains("..") {
        meant = meant.replace("@@", "@").replace("..", ".");
    }
    if !meant.contains('@') {
        let (local, provider) = PROVIDERS
            .iter()
            .find_map(|p| meant.strip_suffix(p).map(|local| (local, p)))?;
        meant = format!("{}@{}", local.trim_end_matches('.'), provider);
    }
    let (local, domain) = meant.split_once('@')?;
    let local = if local.is_ascii() {
        local.to_owned()
    } else {
        fold(local)
    };
    let domain = SLIPS
        .iter()
        .find(|(_, slips)| slips.split(' ').any(|slip| slip == domain))
        .map_or(domain, |(meant, _)| meant);
    let meant = format!("{}@{domain}", local.trim_matches('.'));
    (meant != address && is_well_formed(&meant)).then_some(meant)
}

#[cfg(test)]
mod tests;
