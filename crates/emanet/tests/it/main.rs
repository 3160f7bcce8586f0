//! Black-box tests: the built program, fake vendors on real sockets, and nothing known of the inside.
//!
//! Every fake keeps what it was told, every installation has its own data directory, and no test waits for time to pass.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops where something it needs is missing, and says what it left behind"
)]

mod cli;
mod config;
mod crashes;
mod crm;
mod fake;
mod forms;
mod graph;
mod http;
mod intake;
mod layers;
mod leads;
mod meta;
mod outages;
mod process;
mod real_crm;
mod secrets;
mod wait;
