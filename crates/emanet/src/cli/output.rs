//! Writing results: JSON lines for programs, tables for people. Data goes to standard output, remarks to standard error.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;
use std::io::{self, IsTerminal as _, Write as _};

/// How a command answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    /// JSON for programs.
    pub(super) json: bool,
}

impl Output {
    /// One JSON value on one line.
    pub(super) fn json_line(self, value: &Value) -> io::Result<()> {
        write_out(&format!("{value}\n"))
    }

    /// Text for people.
    pub(super) fn text(self, text: &str) -> io::Result<()> {
        write_out(text)
    }

    /// Bytes of others as they are: for a file or a pipe.
    pub(super) fn bytes(self, bytes: &[u8]) -> io::Result<()> {
        write_bytes(bytes)
    }

    /// A table for people: fitted to a terminal, one row a line elsewhere.
    pub(super) fn table(self, head: &[&str], rows: Vec<Vec<String>>) -> io::Result<()> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(head);
        if io::stdout().is_terminal() {
            let (_, columns) = console::Term::stdout().size();
            table
                .load_style(presets::UTF8_HORIZONTAL_ONLY)
                .set_width(columns)
                .set_content_arrangement(ContentArrangement::Dynamic);
        }
        table.add_rows(rows);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        write_out(&format!("{}\n", table.trim_fmt()))
    }
}

fn write_out(text: &str) -> io::Result<()> {
    write_bytes(text.as_bytes())
}

/// A reader that has seen enough (`| head`) is no failure.
fn write_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        written => written,
    }
}

/// A remark for people.
pub(super) fn remark(text: &str) {
    // If standard error is gone there is nobody left to tell.
    let _ = writeln!(io::stderr(), "{text}");
}

/// The text at a place of an answer (`/failure/message`); empty if there is none. Numbers and flags are written out.
pub(super) fn at(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => printable(text),
        Some(other) => other.to_string(),
    }
}

/// The list at a place of an answer; empty if there is none.
pub(super) fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A time as people read it: to the second, in UTC.
pub(super) fn time_at(value: &Value, pointer: &str) -> String {
    let text = at(value, pointer);
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        Err(_) => text,
    }
}

/// Text of others on a terminal: no control characters, which could move the cursor or forge lines.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}
