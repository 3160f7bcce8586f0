//! Idempotency keys and external ids (ID-1, design 9.3): derived, never random.

use crate::ids::SourceId;

/// External id of an event's record: `<source id>:<source_ref>`; with a step name behind it for anything but the lead itself.
pub fn external_id(source: SourceId, source_ref: &str, step: Option<&str>) -> String {
    let _ = (source, source_ref, step);
    todo!()
}

/// Idempotency key of a step: external id, step name, and `:rN` from the second revision on (design 9.3, 9.4).
pub fn step_key(source: SourceId, source_ref: &str, step: &str, revision: u32) -> String {
    let _ = (source, source_ref, step, revision);
    todo!()
}

/// A key for vendors that limit length or alphabet: UUIDv5 of it.
pub fn compact(key: &str) -> String {
    let _ = key;
    todo!()
}
