//! Logs: sentences with dotted fields, on standard error.

use std::io::IsTerminal;
use tracing::Subscriber;
use tracing_subscriber::filter::{EnvFilter, ParseError};
use tracing_subscriber::fmt::{MakeWriter, fmt};

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The filter cannot be read.
    #[error("the log filter is not valid (expected something like `info,emanet=debug`): {0}")]
    Filter(#[from] ParseError),
    /// It was set up before.
    #[error("logging was set up already")]
    Twice,
}

/// Sets up logging for the process, and what is said of a panic: where it happened, not its message, which may quote a
/// lead (slicing a text in the middle of a character does).
///
/// # Errors
/// If the filter cannot be read, or logging was set up before.
pub fn init(format: LogFormat, filter: &str) -> Result<(), InitError> {
    let is_terminal = std::io::stderr().is_terminal();
    let subscriber = subscriber(format, filter, is_terminal, std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| InitError::Twice)?;
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        tracing::error!(
            panic.location = location.as_deref().unwrap_or("unknown"),
            "a part of the program panicked; please report the location"
        );
    }));
    Ok(())
}

/// The subscriber [`init`] installs, writing to `writer`.
pub(crate) fn subscriber<W>(
    format: LogFormat,
    filter: &str,
    colours: bool,
    writer: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, ParseError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let builder = fmt()
        .with_env_filter(EnvFilter::try_new(filter)?)
        .with_writer(writer);
    Ok(match format {
        LogFormat::Text => Box::new(builder.with_ansi(colours).finish()),
        LogFormat::Json => Box::new(
            builder
                .json()
                .flatten_event(true)
                .with_span_list(false)
                .finish(),
        ),
    })
}

#[cfg(test)]
pub(crate) mod captured {
    //! Log lines caught in memory.

    use super::{LogFormat, subscriber};
    use std::io;
    use std::sync::{Arc, Mutex};
    use tracing::subscriber::DefaultGuard;

    /// What was logged.
    #[derive(Clone, Default)]
    pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Lines {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Catches every line this thread logs while the guard lives.
    pub(crate) fn lines(format: LogFormat) -> (Lines, DefaultGuard) {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = subscriber(format, "trace", false, move || writer.clone()).unwrap();
        (lines, tracing::subscriber::set_default(subscriber))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F36: a value with line breaks and terminal escapes makes no line of its own.
    fn check(format: LogFormat) {
        let hostile = "Ali\r\n2026-01-01 ERROR forged\u{1b}[31m";
        let (lines, guard) = captured::lines(format);
        tracing::warn!(error.detail = ?hostile, "a request was put off");
        drop(guard);
        let text = lines.text();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(text.contains("a request was put off"), "{text}");
    }

    #[test]
    fn no_line_can_be_forged() {
        check(LogFormat::Text);
        check(LogFormat::Json);
    }

    #[test]
    fn json_lines_are_flat_objects() {
        let (lines, guard) = captured::lines(LogFormat::Json);
        tracing::info!(source.id = "src_1", "stored");
        drop(guard);
        let line: serde_json::Value = serde_json::from_str(lines.text().trim()).unwrap();
        assert_eq!(line["source.id"], "src_1");
        assert_eq!(line["message"], "stored");
        assert_eq!(line["level"], "INFO");
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_an_error() {
        assert!(matches!(
            init(LogFormat::Text, "emanet=loudly"),
            Err(InitError::Filter(_))
        ));
    }

    #[test]
    fn a_panic_is_logged_without_its_message() {
        let (lines, guard) = captured::lines(LogFormat::Json);
        // The hook is the process's; this thread's subscriber catches what it says.
        init(LogFormat::Json, "off").unwrap();
        let caught = std::panic::catch_unwind(|| &"Şükrü +905321234567"[1..]);
        drop(std::panic::take_hook());
        drop(guard);
        assert!(caught.is_err());
        let text = lines.text();
        assert!(text.contains("logs.rs:"), "{text}");
        assert!(!text.contains("+905321234567"), "{text}");
    }
}
