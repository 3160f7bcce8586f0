//! People who fill in forms: most of them well, some twice, some badly, some of them robots.

use super::AppError;
use crate::app::demo::traffic::http::post;
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use tokio::task::JoinSet;

mod http;

/// Requests under way at a time.
const SENDERS: usize = 16;

/// What is sent.
#[derive(Debug)]
pub struct Traffic {
    visitors: Vec<Visitor>,
}

/// Somebody who fills in the form.
#[derive(Debug, Clone)]
struct Visitor {
    submission: String,
    form: Vec<(&'static str, String)>,
    /// How often the form is sent: a double click, a reload, an impatient proxy.
    times: u32,
}

/// What was acknowledged: submission id → event id.
#[derive(Debug, Default)]
pub struct Sent {
    /// Event ids by submission.
    pub acknowledged: BTreeMap<String, String>,
    /// Requests made, repeats included.
    pub requests: u64,
    /// Requests that got no 200.
    pub refused: u64,
}

impl Traffic {
    /// So many visitors, the same for the same seed.
    pub fn new(seed: u64, leads: u32) -> Self {
        let mut chance = fastrand::Rng::with_seed(seed);
        Self {
            visitors: (0..leads)
                .map(|number| visitor(number, &mut chance))
                .collect(),
        }
    }

    /// Sends the next so many visitors' forms; each repeat goes out at the same time as its original.
    ///
    /// # Errors
    /// If the intake cannot be reached at all.
    pub async fn send(
        &mut self,
        visitors: usize,
        intake: &str,
        bar: &ProgressBar,
        sent: &mut Sent,
    ) -> Result<(), AppError> {
        let mut sending = JoinSet::new();
        let rest = self.visitors.split_off(visitors.min(self.visitors.len()));
        for visitor in std::mem::replace(&mut self.visitors, rest) {
            while sending.len() >= SENDERS {
                note(sent, sending.join_next().await)?;
            }
            for _ in 0..visitor.times {
                let (intake, visitor) = (intake.to_owned(), visitor.clone());
                sending.spawn(async move {
                    (
                        visitor.submission.clone(),
                        post(&intake, &visitor.form).await,
                    )
                });
            }
            bar.inc(1);
            // A steady stream, not a burst.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        while !sending.is_empty() {
            note(sent, sending.join_next().await)?;
        }
        Ok(())
    }
}

type Answered = (String, Result<Option<String>, std::io::Error>);

fn note(
    sent: &mut Sent,
    answered: Option<Result<Answered, tokio::task::JoinError>>,
) -> Result<(), AppError> {
    let Some(answered) = answered else {
        return Ok(());
    };
    let (submission, event) = answered.map_err(|e| AppError::Demo(e.to_string()))?;
    sent.requests += 1;
    match event.map_err(|e| AppError::Demo(format!("the intake cannot be reached: {e}")))? {
        Some(event) => {
            sent.acknowledged.insert(submission, event);
        }
        None => sent.refused += 1,
    }
    Ok(())
}

const FIRST: &[&str] = &[
    "Ayşe", "Mehmet", "Zeynep", "Çağrı", "Işıl", "İrem", "Ömer", "Şule", "Uğur", "Gülşah",
];
const LAST: &[&str] = &[
    "Yılmaz", "Şahin", "Öztürk", "Çelik", "Işık", "Güneş", "Aydın", "Kılıç", "Doğan", "Ünal",
];

fn visitor(number: u32, chance: &mut fastrand::Rng) -> Visitor {
    let submission = format!("demo-{number:05}");
    let pick = |chance: &mut fastrand::Rng, names: &[&'static str]| {
        names
            .get(chance.usize(..names.len()))
            .copied()
            .unwrap_or_default()
    };
    let name = format!("{} {}", pick(chance, FIRST), pick(chance, LAST));
    let email = format!("demo{number}@example.com");
    let phone = format!(
        "053{} {:03} {:02} {:02}",
        chance.u32(0..10),
        chance.u32(100..1000),
        chance.u32(10..100),
        chance.u32(10..100)
    );
    let mut form = vec![
        ("emanet_id", submission.clone()),
        ("ad_soyad", name),
        ("telefon", phone),
        ("e_posta", email),
    ];
    match chance.u32(0..100) {
        // No phone, but an e-mail: delivered, tagged, with a task to check it.
        0..5 => set(&mut form, "telefon", "yok"),
        // Nobody can be reached: a dead letter.
        5..7 => {
            set(&mut form, "telefon", "123");
            set(&mut form, "e_posta", "-");
        }
        // A robot: it fills in what people do not see.
        7..9 => form.push(("website_url", "https://spam.example".into())),
        // A test lead.
        9..11 => set(
            &mut form,
            "ad_soyad",
            "<test lead: dummy data for full_name>",
        ),
        _ => {}
    }
    let times = if chance.u32(0..100) < 12 {
        chance.u32(2..5)
    } else {
        1
    };
    Visitor {
        submission,
        form,
        times,
    }
}

fn set(form: &mut [(&'static str, String)], field: &str, value: &str) {
    if let Some((_, old)) = form.iter_mut().find(|(name, _)| *name == field) {
        *old = value.to_owned();
    }
}
