//! Emanet, the program: everything that has an edge. Rules live in `emanet-core`, SQL in `emanet-store`, vendors in
//! `emanet-connectors`; this crate wires them to HTTP, time, terminals and files.

pub mod api;
pub mod app;
pub mod cli;
pub mod config;
pub mod console;
pub mod engine;
pub mod env;
pub mod http_server;
pub mod ingest;
pub mod installation;
pub mod sandbox;
pub mod scheduler;
pub mod telemetry;
pub mod transport;
