//! Fingerprint of a failure: what dead letters and held leads are grouped under.
//!
//! It is stored, so its form never changes. It is built from what is the same for every lead that meets the failure; a lead's
//! own values and the message's wording stay out.

use crate::classify::Failure;
use crate::ids::Target;
use crate::step::Kind;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Hexadecimal digits of a fingerprint.
const DIGITS: usize = 16;

/// Fingerprint of target, step kind, class, vendor code (else status) and field: short, stable, readable by nobody.
pub fn fingerprint(target: Target, kind: Kind, failure: &Failure) -> String {
    let code = match (&failure.vendor_code, failure.status) {
        (Some(code), _) => format!("code {code}"),
        (None, Some(status)) => format!("status {status}"),
        (None, None) => String::new(),
    };
    digest(&[
        &target.to_string(),
        kind.as_str(),
        failure.class.as_str(),
        &code,
        failure.field.as_deref().unwrap_or_default(),
    ])
}

/// The parts' digest. Each goes in behind its length, so that no two lists of parts read the same.
fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut text = String::with_capacity(DIGITS);
    for byte in hash.finalize().iter().take(DIGITS / 2) {
        write!(text, "{byte:02x}").expect("a String takes whatever is written to it");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Class;
    use crate::ids::{DestinationId, SourceId};
    use jiff::Timestamp;

    fn failure() -> Failure {
        Failure {
            class: Class::PermanentConfig,
            status: Some(403),
            ..Failure::internal("no permission")
        }
    }

    fn destination() -> Target {
        Target::Destination(DestinationId::new(Timestamp::UNIX_EPOCH, [1; 10]))
    }

    /// Stored fingerprints must be met again after an upgrade: this value is for ever.
    #[test]
    fn the_form_never_changes() {
        let print = fingerprint(destination(), Kind::Crm, &failure());
        assert_eq!(print, "7081d11863b7eafe");
    }

    /// Design 1: a cause is target, step kind, class, vendor code and field.
    #[test]
    fn each_part_makes_another_cause() {
        let source = Target::Source(SourceId::new(Timestamp::UNIX_EPOCH, [1; 10]));
        let with = |change: fn(&mut Failure)| {
            let mut failure = failure();
            change(&mut failure);
            fingerprint(destination(), Kind::Crm, &failure)
        };
        let prints = [
            with(|_| ()),
            fingerprint(source, Kind::Crm, &failure()),
            fingerprint(destination(), Kind::Task, &failure()),
            with(|f| f.class = Class::PermanentData),
            with(|f| f.status = Some(401)),
            with(|f| f.status = None),
            with(|f| f.vendor_code = Some("403".into())),
            with(|f| f.field = Some("owner".into())),
            with(|f| f.field = Some("phone".into())),
        ];
        for (i, print) in prints.iter().enumerate() {
            assert_eq!(print.len(), DIGITS);
            assert!(!prints[..i].contains(print), "part {i} does not count");
        }
    }

    /// What differs from lead to lead stays out: they group under one cause.
    #[test]
    fn wording_and_effect_make_no_other_cause() {
        let mut other = failure();
        other.message = "another wording".into();
        other.hint = "another hint".into();
        other.effect = crate::classify::Effect::MaybeApplied;
        other.vendor_code = None;
        assert_eq!(
            fingerprint(destination(), Kind::Crm, &other),
            fingerprint(destination(), Kind::Crm, &failure())
        );
    }

    /// With a vendor code the status does not count: several vendors change it from version to version.
    #[test]
    fn the_vendors_code_stands_before_the_status() {
        let coded = |status| Failure {
            vendor_code: Some("MISSING_SCOPES".into()),
            status,
            ..failure()
        };
        assert_eq!(
            fingerprint(destination(), Kind::Crm, &coded(Some(403))),
            fingerprint(destination(), Kind::Crm, &coded(Some(400)))
        );
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_ne!(digest(&["a", ""]), digest(&["a"]));
    }
}
