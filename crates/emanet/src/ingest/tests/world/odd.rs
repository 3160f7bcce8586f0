//! A source whose connector does what none should.

use emanet_connectors::connector::{Received, Reply, Sample, Source, SourceKind, Unreadable};
use emanet_core::event::Inbound;
use emanet_core::lead::RawLead;
use jiff::Timestamp;

pub(super) static KIND: SourceKind = SourceKind {
    kind: "odd",
    title: "Odd",
    module: "FORM",
    fields: &[],
    docs: "",
    build: |_| Ok(Box::new(Odd)),
};

#[derive(Debug)]
struct Odd;

impl Source for Odd {
    fn receive(&self, request: &Inbound, _now: Timestamp) -> Received {
        assert_ne!(request.body, b"panic", "as the test asked for");
        Received::Events {
            items: Vec::new(),
            reply: Reply::Json,
        }
    }

    fn read(
        &self,
        _request: &Inbound,
        _pointer: &str,
        _fetched: Option<&serde_json::Value>,
    ) -> Result<RawLead, Unreadable> {
        unreachable!("intake reads nothing")
    }

    fn compose(&self, _sample: &Sample) -> Inbound {
        unreachable!("intake sends nothing")
    }
}
