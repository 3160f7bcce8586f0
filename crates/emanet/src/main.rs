//! The `emanet` binary: parses and dispatches, nothing else.

fn main() {}
