//! Every kind of destination. Adding one: a `mod` line and an entry.

mod http;
mod sandbox;

use crate::connector::DestinationKind;

/// All kinds of destinations, in the order they are shown.
pub const ALL: &[&DestinationKind] = &[&http::KIND, &sandbox::KIND];

/// The kind of that name.
pub fn find(kind: &str) -> Option<&'static DestinationKind> {
    ALL.iter().copied().find(|k| k.kind == kind)
}
