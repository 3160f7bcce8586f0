//! The truth table of "was it sent?", played against servers that misbehave in every way.

mod addresses;
mod fake;
mod matrix;
mod reuse;
mod secure;

use super::*;
use emanet_core::call::Method;
use fake::Fake;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

fn options() -> Options {
    Options {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        ..Options::default()
    }
}

fn transport(options: Options) -> HttpTransport {
    HttpTransport::new(options, &Env::system()).unwrap()
}

/// For servers that fall silent.
fn impatient() -> Options {
    Options {
        deadlines: Deadlines {
            call: Duration::from_secs(1),
            ..Deadlines::default()
        },
        ..options()
    }
}

fn call(method: Method, url: &str, body: &[u8]) -> Call {
    Call {
        name: "create".into(),
        method,
        url: url.into(),
        headers: Vec::new(),
        body: body.to_vec(),
        mutates: method != Method::Get,
    }
}

fn post(fake: &Fake) -> Call {
    call(Method::Post, &fake.url(), b"{\"name\":\"Ay\xc5\x9fe\"}")
}

fn get(fake: &Fake) -> Call {
    call(Method::Get, &fake.url(), b"")
}

fn answer(outcome: Outcome) -> emanet_core::call::Answer {
    match outcome {
        Outcome::Answered(answer) => answer,
        other => panic!("not answered: {other:?}"),
    }
}

/// A name service that answers from a list, again and again.
#[derive(Debug)]
struct Fixed {
    answers: Vec<Vec<&'static str>>,
    asked: AtomicUsize,
}

impl Fixed {
    fn new(answers: Vec<Vec<&'static str>>) -> Arc<Self> {
        Arc::new(Self {
            answers,
            asked: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl Resolve for Fixed {
    async fn resolve(&self, _: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst) % self.answers.len();
        let addresses = self.answers[turn].iter();
        Ok(addresses
            .map(|text| SocketAddr::new(text.parse().unwrap(), port))
            .collect())
    }
}
