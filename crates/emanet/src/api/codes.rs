//! `GET /errors`: every code the API can answer with, and what to do about it (API-1, API-2).

use super::trace::Trace;
use axum::Json;
use emanet_core::error_code::{self, Code, Side};
use serde::Serialize;

/// A code.
#[derive(Debug, Serialize)]
pub(super) struct CodeView {
    code: &'static str,
    status: u16,
    /// Who must act: `client` or `server`.
    side: &'static str,
    is_retryable: bool,
    message: &'static str,
    hint: &'static str,
}

/// In the caller's language.
pub(super) async fn list() -> Json<Vec<CodeView>> {
    let language = Trace::current().map(|t| t.language).unwrap_or_default();
    let view = |code: &&'static Code| CodeView {
        code: code.text,
        status: code.status,
        side: match code.side() {
            Side::Client => "client",
            Side::Server => "server",
        },
        is_retryable: code.is_retryable,
        message: code.message(language),
        hint: code.hint(language),
    };
    Json(error_code::ALL.iter().map(view).collect())
}
