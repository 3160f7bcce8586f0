//! Reads `multipart/form-data`. The parser is an asynchronous one; its input is all there, so it is polled to the end on the spot.

use super::wire::{Part, Reason};
use futures_core::Stream;
use multer::Multipart;
use multer::bytes::Bytes;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// Parts of one body at most.
const PARTS_MAX: usize = 1_000;
/// A parser whose input is complete has nothing to wait for; one that still is not ready after this many polls never will be.
const POLLS_MAX: usize = 16;

/// The parts of a body. Of a file its name and size are kept as the value.
pub(super) fn read(content_type: &str, body: &[u8]) -> Result<Vec<Part>, Reason> {
    let boundary = multer::parse_boundary(content_type).map_err(|_| "no_boundary")?;
    let mut multipart = Multipart::new(Whole(Some(Bytes::copy_from_slice(body))), boundary);
    let parts = async {
        let mut parts = Vec::new();
        while let Some(field) = multipart.next_field().await? {
            if parts.len() == PARTS_MAX {
                return Ok(Err("too_many_fields"));
            }
            // A name that is missing or not UTF-8 is no reason to lose what was typed.
            let name = match field.name() {
                Some(name) => unescape(name),
                None => format!("part_{}", parts.len()),
            };
            let file_name = field.file_name().map(str::to_owned);
            let value = field.bytes().await?;
            let value = match file_name {
                None => value.to_vec(),
                Some(file) if file.is_empty() && value.is_empty() => Vec::new(),
                Some(file) => format!("{file} ({} bytes)", value.len()).into_bytes(),
            };
            parts.push(Part {
                name: name.into_bytes(),
                value,
            });
        }
        Ok::<_, multer::Error>(Ok(parts))
    };
    match at_once(parts) {
        Some(Ok(parts)) => parts,
        Some(Err(_)) | None => Err("not_multipart"),
    }
}

/// Browsers escape exactly these three in a name (HTML standard, multipart form data).
fn unescape(name: &str) -> String {
    name.replace("%22", "\"")
        .replace("%0D", "\r")
        .replace("%0A", "\n")
}

/// The whole input, in one piece.
struct Whole(Option<Bytes>);

impl Stream for Whole {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

/// Runs a future that waits for nothing.
fn at_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..POLLS_MAX).find_map(|_| match future.as_mut().poll(&mut context) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    })
}
