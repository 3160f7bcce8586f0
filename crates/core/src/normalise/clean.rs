//! NUL characters (H25): databases refuse them, so they go, by a rule on decoded characters. The text `\u0000` that somebody
//! typed is not one and stays.

use crate::lead::{Problem, RawLead};

/// A copy without NUL in any text; fields that had one are noted as `repaired`.
pub(super) fn without_nul(raw: &RawLead) -> RawLead {
    let mut clean = raw.clone();
    let mut repaired = Vec::new();
    for (key, values) in &mut clean.fields {
        let mut had_nul = strip(key);
        for value in values {
            had_nul |= strip(value);
        }
        if had_nul {
            repaired.push(key.clone());
        }
    }
    for (key, _) in &mut clean.consent {
        if strip(key) {
            repaired.push(key.clone());
        }
    }
    let had_nul = |(key, value): (&String, &String)| key.contains('\0') || value.contains('\0');
    if clean.attribution.iter().any(had_nul) {
        clean.attribution = clean
            .attribution
            .into_iter()
            .map(|(mut key, mut value)| {
                if strip(&mut key) | strip(&mut value) {
                    repaired.push(key.clone());
                }
                (key, value)
            })
            .collect();
    }
    for problem in &mut clean.problems {
        strip(&mut problem.field);
        strip(&mut problem.code);
    }
    let notes = repaired.iter().map(|key| Problem::note(key, "repaired"));
    clean.problems.extend(notes);
    clean
}

/// Whether there was anything to remove.
fn strip(text: &mut String) -> bool {
    let had_nul = text.contains('\0');
    if had_nul {
        text.retain(|c| c != '\0');
    }
    had_nul
}
