//! Leads to send, with personal data that is looked for in every log afterwards.

use crate::graph::{Graph, notification};
use crate::http::{Answer, form, post, post_signed, request};
use std::io;

/// Part of every name, address and number below; no log line may have one of them (invariant 7).
pub(crate) const CANARIES: [&str; 3] = ["Kanarya", "kanarya.example", "532771"];

/// The fields of the n-th lead of a web form.
pub(crate) fn fields(n: usize) -> [(&'static str, String); 4] {
    [
        ("full_name", format!("Ayşe{n} Kanarya")),
        ("email", format!("ayse{n}@kanarya.example")),
        (
            "phone",
            format!("0532 771 {:02} {:02}", n / 100 % 100, n % 100),
        ),
        ("message", format!("{n} numaralı daire")),
    ]
}

/// The address of the n-th lead, as it arrives in the CRM.
pub(crate) fn email(n: usize) -> String {
    format!("ayse{n}@kanarya.example")
}

/// Posts the n-th lead as a program would, with a submission id of its own.
pub(crate) fn send(intake: &str, n: usize) -> Answer {
    try_send(intake, n).unwrap_or_else(|error| panic!("lead {n}: {error}"))
}

/// The same; the error is the connection's.
pub(crate) fn try_send(intake: &str, n: usize) -> io::Result<Answer> {
    let fields = fields(n);
    let submission = format!("submission-{n}");
    let mut pairs: Vec<(&str, &str)> = fields.iter().map(|(k, v)| (*k, v.as_str())).collect();
    pairs.push(("emanet_id", &submission));
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("accept", "application/json"),
    ];
    request("POST", intake, &headers, &form(&pairs))
}

/// Posts the n-th lead as JSON.
pub(crate) fn send_json(intake: &str, n: usize) -> Answer {
    let mut body: serde_json::Map<_, _> = fields(n)
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v.into()))
        .collect();
    body.insert("emanet_id".to_owned(), format!("submission-{n}").into());
    post(
        intake,
        "application/json",
        serde_json::Value::Object(body).to_string().as_bytes(),
    )
}

/// Makes leads that can be fetched, and returns their ids.
pub(crate) fn in_graph(graph: &Graph, numbers: impl Iterator<Item = usize>) -> Vec<String> {
    let id_of = |n: usize| {
        let id = format!("990011223344{n:04}");
        let phone = format!("+90532771{:04}", n % 10_000);
        graph.add_lead(&id, &format!("Ayşe{n} Kanarya"), &phone, &email(n));
        id
    };
    numbers.map(id_of).collect()
}

/// Tells of leads as Meta does; asserts the 200.
pub(crate) fn notify(intake: &str, ids: &[String], per_entry: usize) {
    let body = notification(ids, per_entry);
    let answer = post_signed(intake, crate::graph::APP_SECRET, &body).expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
}
