//! `send`: leads for trying out, formed and signed as the source's platform does, with invented names. Sends each once.

use super::args::Send;
use super::client::Client;
use super::exit::{Exit, Failed};
use super::looking::path_part;
use super::output::{Output, at, list, remark};
use crate::env::Env;
use crate::transport::{HttpTransport, Options, Transport as _};
use base64::Engine as _;
use emanet_core::call::{Answer, Call, HeaderValue, Method, Outcome};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinSet;
use url::Url;

/// Leads composed in one call.
const BATCH: u32 = 500;
/// Requests under way at a time.
const AT_A_TIME: usize = 16;

pub(super) async fn send(
    client: &Client,
    output: Output,
    env: &Env,
    args: Send,
) -> Result<(), Failed> {
    let transport = Arc::new(transport(env)?);
    let bar = ProgressBar::new(args.count.into()).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len}").expect("the template is valid"),
    );
    let mut refused = 0_u32;
    let mut left = args.count;
    while left > 0 {
        let count = left.min(BATCH);
        left -= count;
        let samples: Vec<_> = (0..count).map(|_| sample(env, &args.fields)).collect();
        let path = format!("/sources/{}/compose", path_part(&args.source));
        let composed = client.post(&path, &json!({ "samples": samples })).await?;
        let to = address(&composed, args.to.as_ref())?;
        let mut under_way = JoinSet::new();
        for (request, sample) in list(&composed, "/requests").iter().zip(samples) {
            if under_way.len() >= AT_A_TIME
                && let Some(answered) = under_way.join_next().await
            {
                refused += report(output, answered)?;
                bar.inc(1);
            }
            let call = call(request, &to)?;
            let transport = Arc::clone(&transport);
            under_way.spawn(async move { (sample, transport.send(&call).await) });
        }
        while let Some(answered) = under_way.join_next().await {
            refused += report(output, answered)?;
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if refused > 0 {
        return Err(Failed::new(
            Exit::Failed,
            format!("{refused} of {} were not accepted", args.count),
        ));
    }
    if !output.json {
        remark(&format!("{} accepted", args.count));
    }
    Ok(())
}

/// One line per request; 1 if it was not accepted.
fn report(
    output: Output,
    answered: Result<(Value, Outcome), tokio::task::JoinError>,
) -> Result<u32, Failed> {
    let (sample, outcome) =
        answered.map_err(|error| Failed::new(Exit::Failed, format!("a sender broke: {error}")))?;
    let (accepted, what) = match &outcome {
        Outcome::Answered(answer) => (accepts(answer), answer_text(answer)),
        Outcome::NotSent(why) => (false, format!("not sent: {why:?}")),
        Outcome::Unknown(why) => (false, format!("no answer: {why:?}")),
    };
    let status = match &outcome {
        Outcome::Answered(answer) => Some(answer.status),
        Outcome::NotSent(_) | Outcome::Unknown(_) => None,
    };
    if output.json {
        output.json_line(&json!({
            "source_ref": sample["source_ref"],
            "accepted": accepted,
            "status": status,
            "answer": what,
        }))?;
    } else {
        let status = status.map_or_else(|| "---".to_owned(), |status| status.to_string());
        output.text(&format!(
            "{status}  {}  {what}\n",
            at(&sample, "/source_ref")
        ))?;
    }
    Ok(u32::from(!accepted))
}

/// Stored: 2xx, or the redirect that thanks a browser.
fn accepts(answer: &Answer) -> bool {
    answer.is_success() || answer.status == 303
}

/// The first line of what came back.
fn answer_text(answer: &Answer) -> String {
    const SHOWN: usize = 300;
    let text = String::from_utf8_lossy(&answer.body);
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(SHOWN)
        .collect();
    line.trim().to_owned()
}

/// Reaches anything: where it goes is the word of whoever types the command, not of a configuration.
fn transport(env: &Env) -> Result<HttpTransport, Failed> {
    let everywhere = ["0.0.0.0/0", "::/0"].map(|range| range.parse().expect("a valid range"));
    let options = Options {
        allow: everywhere.to_vec(),
        ..Options::default()
    };
    HttpTransport::new(options, env).map_err(|error| Failed::new(Exit::Failed, error.to_string()))
}

/// The intake address: as given, a given server's, or the running server's own.
fn address(composed: &Value, to: Option<&Url>) -> Result<Url, Failed> {
    let path = at(composed, "/intake_path");
    match to {
        Some(url) if url.path() == "/" => {
            let mut url = url.clone();
            url.set_path(&path);
            Ok(url)
        }
        Some(url) => Ok(url.clone()),
        None => at(composed, "/intake").parse().map_err(|_| {
            Failed::new(
                Exit::Unreachable,
                "no server is running here: start one with `emanet serve`, or say where to send with --to",
            )
        }),
    }
}

fn call(request: &Value, to: &Url) -> Result<Call, Failed> {
    let odd = || {
        Failed::new(
            Exit::Failed,
            "the server composed a request that cannot be sent",
        )
    };
    let method = match at(request, "/method").as_str() {
        "POST" => Method::Post,
        "GET" => Method::Get,
        _ => return Err(odd()),
    };
    let mut url = to.clone();
    let query = at(request, "/query");
    if !query.is_empty() {
        url.set_query(Some(&query));
    }
    let headers = list(request, "/headers")
        .iter()
        .map(|header| (at(header, "/0"), HeaderValue::Plain(at(header, "/1"))));
    Ok(Call {
        name: "send".into(),
        method,
        url: url.into(),
        headers: headers.collect(),
        body: base64::engine::general_purpose::STANDARD
            .decode(at(request, "/body_base64"))
            .map_err(|_| odd())?,
        mutates: true,
    })
}

/// An invented lead, with the given fields in the place of the invented ones.
fn sample(env: &Env, given: &[(String, String)]) -> Value {
    let mut fields = invented(env);
    for (name, value) in given {
        match fields.iter_mut().find(|(known, _)| known == name) {
            Some(field) => field.1.clone_from(value),
            None => fields.push((name.clone(), value.clone())),
        }
    }
    // Digits, as the platforms number their leads: any source can carry them.
    let number = u64::from_le_bytes(env.bytes()) % 1_000_000_000_000_000 + 1_000_000_000_000_000;
    json!({
        "source_ref": number.to_string(),
        "created_at": env.now(),
        "fields": fields,
    })
}

fn invented(env: &Env) -> Vec<(String, String)> {
    const FIRST: [&str; 16] = [
        "Ayşe", "Mehmet", "Zeynep", "Çağrı", "Şule", "İbrahim", "Gülşah", "Ömer", "Elif", "Uğur",
        "Nazlı", "Işıl", "Kerem", "Defne", "Özgür", "Tuğba",
    ];
    const LAST: [&str; 16] = [
        "Yılmaz", "Öztürk", "Şahin", "Çelik", "Aydın", "Güneş", "Işık", "Koç", "Doğan", "Kılıç",
        "Arslan", "Taş", "Ünal", "Aksoy", "Erdoğdu", "Çakır",
    ];
    let draw = |n: u64| u64::from_le_bytes(env.bytes()) % n;
    let pick = |names: &[&'static str; 16]| names[usize::from(env.bytes::<1>()[0] % 16)];
    let (first, last) = (pick(&FIRST), pick(&LAST));
    let number = draw(10_000);
    vec![
        ("full_name".into(), format!("{first} {last}")),
        // 0555 000 xx xx: of the right form, and handed out to nobody we know of.
        (
            "phone_number".into(),
            format!("0555 000 {:02} {:02}", number / 100, number % 100),
        ),
        (
            "email".into(),
            format!("{}.{}{number}@example.com", plain(first), plain(last)),
        ),
    ]
}

/// A name in letters every address may have.
fn plain(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            'ç' | 'Ç' => 'c',
            'ğ' | 'Ğ' => 'g',
            'ı' | 'I' | 'İ' => 'i',
            'ö' | 'Ö' => 'o',
            'ş' | 'Ş' => 's',
            'ü' | 'Ü' => 'u',
            other => other.to_ascii_lowercase(),
        })
        .collect()
}
