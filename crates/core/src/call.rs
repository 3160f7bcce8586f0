//! One HTTP call to a vendor and what came of it, as values. Connectors describe calls; the transport performs them.

use crate::secret::Secret;
use std::fmt;
use std::time::Duration;

/// HTTP methods connectors use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// The method as it stands in the request line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The value of a request header: plain values may be stored and shown, secret ones only sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderValue {
    /// May be stored with the attempt and shown.
    Plain(String),
    /// Sent, never stored or shown; filled in anew for every attempt, so a rotated token takes effect.
    Secret(Secret),
}

/// One call to make. The body is final: the same bytes are stored, signed, sent and sent again (H2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What the call is for within its step (`lookup`, `create`, …). Unique within the step.
    pub name: String,
    /// HTTP method.
    pub method: Method,
    /// Absolute URL: `http`, `https`, or `sandbox` for the CRM inside the product.
    pub url: String,
    /// Headers; `Host` and `Content-Length` are the transport's.
    pub headers: Vec<(String, HeaderValue)>,
    /// Body bytes; empty for none.
    pub body: Vec<u8>,
    /// Whether the call changes anything on the other side. Such a call is stored before it is sent (intent) and its outcome
    /// after; one that only reads needs neither.
    pub mutates: bool,
}

/// An answer whose head was read completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Header names in lower case, in order of arrival.
    pub headers: Vec<(String, String)>,
    /// What was read of the body.
    pub body: Vec<u8>,
    /// Whether `body` is all of it.
    pub body_state: BodyState,
    /// Whether the connection had served another request before (matters for 408, ERR-6).
    pub reused_connection: bool,
}

/// How much of an answer's body was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyState {
    /// All of it.
    Whole,
    /// The first bytes; the rest was over the limit and not read.
    Capped,
    /// The first bytes; the connection broke or fell silent.
    Lost,
}

impl Answer {
    /// The first header of that name (lower case), if any.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// The body as JSON, if all of it was read and it is JSON. A byte order mark is skipped.
    pub fn json(&self) -> Option<serde_json::Value> {
        if self.body_state != BodyState::Whole {
            return None;
        }
        let bytes = self
            .body
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(&self.body);
        serde_json::from_slice(bytes).ok()
    }

    /// Whether the status is 2xx. No connector takes that alone for success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why a call was certainly never received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotSent {
    /// The host name has no address, or the name service did not answer.
    Dns,
    /// No connection: refused, unreachable or timed out.
    Connect,
    /// TLS was not established for a reason that may pass (closed in the middle, timed out).
    Tls,
    /// The other side's certificate does not verify (ERR-3: permanent_config).
    Certificate,
    /// The address is in a range that the operator has not allowed.
    AddressRefused,
    /// A pooled connection was dead or dirty before the first byte.
    StaleConnection,
    /// The call itself cannot be made: no valid URL, an invalid header.
    InvalidCall,
}

/// How a call that was, or may have been, sent ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Broken {
    /// The connection closed or was reset before the answer's head was complete.
    Closed,
    /// No answer within the deadline.
    TimedOut,
    /// What came back was not HTTP.
    Garbage,
    /// The process ended between intent and result (the engine's word, never the transport's).
    Interrupted,
}

/// What became of a call. Only `NotSent` may be repeated freely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not one byte of the request was delivered to the other side's HTTP layer.
    NotSent(NotSent),
    /// A complete head came back.
    Answered(Answer),
    /// Sent, or perhaps sent; what the other side did is not known.
    Unknown(Broken),
}

/// A call within one run of a step, with its answer: what a connector is shown to decide the next call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// What was asked.
    pub call: Call,
    /// What came back.
    pub answer: Answer,
}

/// The longest any call may take, from dialling to the last byte of the body.
pub const CALL_DEADLINE: Duration = Duration::from_secs(25);
/// How much of an answer's body is read at most.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;
