//! Idempotency keys and external ids (ID-1, design 9.3): derived, never random.
//!
//! They are written into other people's systems, and after a restore the same event must find its own record there. So their
//! form never changes, and two different things never share one: the parts are joined by colons, and a colon inside a part is
//! written `%3A` (and a per cent sign `%25`), which leaves all but very unusual references as they are.

use crate::ids::SourceId;
use uuid::Uuid;

/// Namespace of [`compact`] keys. A random UUID, drawn once; never to be changed.
const NAMESPACE: Uuid = Uuid::from_u128(0x7b87_cf5f_0d85_4450_8a66_4059_8e26_ccbc);

/// External id of an event's record: `<source id>:<source_ref>`; with a step name behind it for anything but the lead itself.
pub fn external_id(source: SourceId, source_ref: &str, step: Option<&str>) -> String {
    let mut id = format!("{source}:{}", escape(source_ref));
    if let Some(step) = step {
        id.push(':');
        id.push_str(&escape(step));
    }
    id
}

/// Idempotency key of a step: external id, step name, and `:rN` from the second revision on (design 9.3, 9.4). Revisions count
/// from 1.
pub fn step_key(source: SourceId, source_ref: &str, step: &str, revision: u32) -> String {
    let key = external_id(source, source_ref, Some(step));
    if revision > 1 {
        format!("{key}:r{revision}")
    } else {
        key
    }
}

/// A key for vendors that limit length or alphabet: UUIDv5 of it.
pub fn compact(key: &str) -> String {
    Uuid::new_v5(&NAMESPACE, key.as_bytes()).to_string()
}

fn escape(part: &str) -> String {
    part.replace('%', "%25").replace(':', "%3A")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use proptest::prelude::*;

    fn source(n: u8) -> SourceId {
        SourceId::new(Timestamp::UNIX_EPOCH, [n; 10])
    }

    /// ID-1, design 9.3: the forms as they stand in other people's systems, for ever.
    #[test]
    fn the_form_never_changes() {
        let src = "src_00000000000071018101010101010101";
        assert_eq!(source(1).to_string(), src);
        for (made, expected) in [
            (external_id(source(1), "4711", None), format!("{src}:4711")),
            (
                external_id(source(1), "4711", Some("task")),
                format!("{src}:4711:task"),
            ),
            (
                step_key(source(1), "4711", "crm", 1),
                format!("{src}:4711:crm"),
            ),
            (
                step_key(source(1), "4711", "crm", 2),
                format!("{src}:4711:crm:r2"),
            ),
            (
                external_id(source(1), "a:b%3A/ş", None),
                format!("{src}:a%3Ab%253A/ş"),
            ),
        ] {
            assert_eq!(made, expected);
        }
        assert_eq!(
            compact("src_1:4711:crm"),
            "1c741378-d793-546e-9817-9ee5904fb052"
        );
    }

    /// Design 9.3: where a vendor limits length or alphabet.
    #[test]
    fn compact_keys_are_uuids_of_version_5() {
        let uuid = Uuid::try_parse(&compact("a")).unwrap();
        assert_eq!(uuid.get_version_num(), 5);
        assert_eq!(compact("a"), compact("a"));
        assert_ne!(compact("a"), compact("b"));
    }

    /// A few characters that could mislead, so that near misses come up often.
    fn tricky() -> impl Strategy<Value = String> {
        prop_oneof!["[:%r12a]{0,6}", "[25A3:%]{0,6}", any::<String>()]
    }

    fn any_input() -> impl Strategy<Value = (u8, String, Option<(String, u32)>)> {
        let step = prop::option::of((tricky(), 1_u32..4));
        (0_u8..2, tricky(), step)
    }

    proptest! {
        /// ID-1: different inputs never give the same key, colons in a reference or not.
        #[test]
        fn different_inputs_give_different_keys(a in any_input(), b in any_input()) {
            let key = |(n, source_ref, step): &(u8, String, Option<(String, u32)>)| match step {
                None => external_id(source(*n), source_ref, None),
                Some((step, revision)) => step_key(source(*n), source_ref, step, *revision),
            };
            prop_assert_eq!(key(&a) == key(&b), a == b, "{:?} and {:?}", a, b);
        }

        /// Design 9.3: a reference without a colon or per cent sign stands in the key as it is.
        #[test]
        fn simple_references_stay_readable(source_ref in "[^:%]{0,40}", step in "[a-z_]{1,12}", revision in 2_u32..) {
            let id = external_id(source(1), &source_ref, None);
            prop_assert_eq!(&id, &format!("{}:{source_ref}", source(1)));
            prop_assert_eq!(
                step_key(source(1), &source_ref, &step, revision),
                format!("{id}:{step}:r{revision}")
            );
        }
    }
}
