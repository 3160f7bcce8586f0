//! Every kind of source. Adding one: a `mod` line and an entry.

use crate::connector::SourceKind;

/// All kinds of sources, in the order they are shown.
pub const ALL: &[&SourceKind] = &[];

/// The kind of that name.
pub fn find(kind: &str) -> Option<&'static SourceKind> {
    ALL.iter().copied().find(|k| k.kind == kind)
}
