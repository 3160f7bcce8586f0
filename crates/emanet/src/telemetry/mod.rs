//! What the program says of itself: logs, metrics, health. None of it ever holds a lead's data, a token or a path of intake
//! (invariant 7): labels come from closed sets, log fields are ids, codes and counts.

mod calls;
mod health;
mod logs;
mod metrics;

pub use calls::Counted;
pub use health::{Health, router};
#[cfg(test)]
pub(crate) use logs::captured;
pub use logs::{InitError, LogFormat, init};
pub use metrics::{IntakeOutcome, Metrics};
