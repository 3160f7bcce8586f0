//! Connectors: every vendor Emanet speaks to, without IO.
//!
//! A source verifies bytes, splits a request into events and reads an event; a destination is shown the lead and the last
//! answer and says which call to make next. The engine performs the calls, so each connector is tested without a network and
//! the bytes of a request can be stored before they are sent.
#![warn(missing_docs)]

pub mod connector;
#[cfg(test)]
mod contract;
pub mod destinations;
mod json;
mod rest;
mod settings;
mod signature;
pub mod sources;
