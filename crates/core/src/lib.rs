//! The rules of Emanet, pure: what a failure means, when to try again, what to do next, what a lead is.
//!
//! Nothing here does IO, reads a clock or draws a random number; time and randomness are arguments. That is what lets the
//! same rules run in production, in property tests and in the simulator.
#![warn(missing_docs)]

pub mod backoff;
pub mod breaker;
pub mod call;
pub mod cause;
pub mod classify;
pub mod error_code;
pub mod event;
pub mod field;
pub mod flow;
pub mod ids;
pub mod key;
pub mod lead;
pub mod mapping;
pub mod normalise;
pub mod retry_after;
pub mod seal;
pub mod secret;
pub mod step;
