//! One POST, as a program sends it.

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use std::io::{Error, ErrorKind};
use tokio::net::TcpStream;

/// Posts a form; the id of the stored event, or nothing for anything but a 200.
pub async fn post(url: &str, form: &[(&'static str, String)]) -> Result<Option<String>, Error> {
    let url = url::Url::parse(url).map_err(|e| Error::new(ErrorKind::InvalidInput, e))?;
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let stream = TcpStream::connect((host, port)).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(Error::other)?;
    let connection = tokio::spawn(connection);
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form.iter().map(|(k, v)| (*k, v.as_str())))
        .finish();
    let request = Request::builder()
        .method(Method::POST)
        .uri(url.path())
        .header(header::HOST, format!("{host}:{port}"))
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(Error::other)?;
    let answer = sender.send_request(request).await.map_err(Error::other)?;
    let ok = answer.status() == hyper::StatusCode::OK;
    let body = answer
        .into_body()
        .collect()
        .await
        .map_err(Error::other)?
        .to_bytes();
    connection.abort();
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let event = json
        .pointer("/events/0/id")
        .and_then(|id| id.as_str())
        .map(str::to_owned);
    Ok(event.filter(|_| ok))
}
