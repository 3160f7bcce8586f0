//! Every kind of source. Adding one: a `mod` line and an entry.

mod meta_lead_ads;
mod web_form;

use crate::connector::SourceKind;

/// All kinds of sources, in the order they are shown.
pub const ALL: &[&SourceKind] = &[&web_form::KIND, &meta_lead_ads::KIND];

/// The kind of that name.
pub fn find(kind: &str) -> Option<&'static SourceKind> {
    ALL.iter().copied().find(|k| k.kind == kind)
}
