//! Shapes that several answers share. They are the API's own: a change in the core does not change an answer.

use emanet_core::classify::{Class, Effect, Failure};
use emanet_store::{Listed, Page};
use serde::{Deserialize, Serialize};

/// One page of a list.
#[derive(Debug, Serialize)]
pub(super) struct ListView<T> {
    items: Vec<T>,
    /// Give this as `after` for the next page; null on the last.
    next: Option<String>,
}

impl<T> ListView<T> {
    pub(super) fn of<R>(listed: Listed<R>, view: impl FnMut(R) -> T) -> Self {
        Self {
            items: listed.rows.into_iter().map(view).collect(),
            next: listed.next,
        }
    }
}

/// Which page, in a query.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    after: Option<String>,
    limit: Option<u32>,
}

/// Rows of a page unless a caller asks for another number.
const ROWS: u32 = 100;
/// Rows of a page at most.
const ROWS_MAX: u32 = 1_000;

/// The page asked for.
pub(super) fn page(after: Option<String>, limit: Option<u32>) -> Page {
    Page {
        after,
        limit: limit.unwrap_or(ROWS).clamp(1, ROWS_MAX),
    }
}

impl From<PageQuery> for Page {
    fn from(query: PageQuery) -> Self {
        page(query.after, query.limit)
    }
}

/// A failure.
#[derive(Debug, Serialize)]
pub(super) struct FailureView {
    class: Class,
    effect: Effect,
    status: Option<u16>,
    vendor_code: Option<String>,
    field: Option<String>,
    message: String,
    hint: String,
    retry_after_seconds: Option<u64>,
}

impl From<Failure> for FailureView {
    fn from(failure: Failure) -> Self {
        Self {
            class: failure.class,
            effect: failure.effect,
            status: failure.status,
            vendor_code: failure.vendor_code,
            field: failure.field,
            message: failure.message,
            hint: failure.hint,
            retry_after_seconds: failure.retry_after.map(|r| r.wait.as_secs()),
        }
    }
}
