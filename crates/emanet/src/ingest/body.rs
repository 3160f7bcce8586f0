//! Reads a body, no further than its limit and within the memory there is (F28).

use super::admission::Memory;
use axum::body::Body;
use axum::http::HeaderValue;
use http_body_util::BodyExt;

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Error {
    /// Over the limit.
    TooLarge,
    /// Not complete in time.
    TooSlow,
    /// Cut off, or not HTTP.
    Broken,
    /// No room for it now.
    NoMemory,
}

/// All bytes of a body. What is declared larger than the limit is not read at all; nothing is set aside for bytes that have
/// not come.
pub(super) async fn read(
    mut body: Body,
    declared: Option<&HeaderValue>,
    limit: usize,
    memory: &mut Memory,
) -> Result<Vec<u8>, Error> {
    let declared = declared.and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|n| n > limit as u64) {
        return Err(Error::TooLarge);
    }
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Error::Broken)?.into_data() else {
            // Trailers say nothing to us.
            continue;
        };
        if data.len() > limit - bytes.len() {
            return Err(Error::TooLarge);
        }
        if !memory.grow_to(bytes.len() + data.len()) {
            return Err(Error::NoMemory);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
