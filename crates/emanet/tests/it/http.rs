//! A client of the tests' own: one request, one connection, one answer, no help from a library.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// A header by name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.body))
    }
}

/// Sends a request; the error is the connection's.
pub(crate) fn request(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Answer> {
    let (host, path) = split(url);
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.set_nodelay(true)?;
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    stream.write_all(&bytes)?;
    read(&mut stream)
}

/// Reads an answer to the end of the connection.
pub(crate) fn read(stream: &mut impl Read) -> io::Result<Answer> {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    parse(&answer).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// GET.
pub(crate) fn get(url: &str) -> Answer {
    request("GET", url, &[], b"").unwrap_or_else(|error| panic!("GET {url}: {error}"))
}

/// POST with a content type.
pub(crate) fn post(url: &str, content_type: &str, body: &[u8]) -> Answer {
    request("POST", url, &[("content-type", content_type)], body)
        .unwrap_or_else(|error| panic!("POST {url}: {error}"))
}

/// POST as Meta does it, signed with the app secret.
pub(crate) fn post_signed(url: &str, secret: &str, body: &[u8]) -> io::Result<Answer> {
    let signature = meta_signature(secret, body);
    let headers = [
        ("content-type", "application/json"),
        ("x-hub-signature-256", signature.as_str()),
    ];
    request("POST", url, &headers, body)
}

/// `sha256=` and the HMAC of the bytes.
pub(crate) fn meta_signature(secret: &str, body: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key length is taken");
    mac.update(body);
    let hex: String = mac
        .finalize()
        .into_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256={hex}")
}

/// Percent-encodes what a form field may not carry as it is.
pub(crate) fn form(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    text.extend_pairs(fields);
    text.finish().into_bytes()
}

fn split(url: &str) -> (&str, &str) {
    let rest = url
        .strip_prefix("http://")
        .expect("the tests speak plain HTTP");
    match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    }
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next()?.split_whitespace().nth(1)?.parse().ok()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let body = &bytes[end + 4..];
    let is_chunked = headers
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if is_chunked {
        unchunk(body)?
    } else {
        body.to_vec()
    };
    Some(Answer {
        status,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn unchunk(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|w| w == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).ok()?.trim(), 16);
        let length = length.ok()?;
        bytes = bytes.get(end + 2..)?;
        if length == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(bytes.get(..length)?);
        bytes = bytes.get(length + 2..)?;
    }
}
