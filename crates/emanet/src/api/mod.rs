//! The HTTP API's edge: error contract and trace of every request.

mod code;
pub mod error;
#[cfg(test)]
mod tests;
pub mod trace;
