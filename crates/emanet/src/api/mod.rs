//! The HTTP API's edge: error contract and trace of every request.

pub mod error;
#[cfg(test)]
mod tests;
pub mod trace;
