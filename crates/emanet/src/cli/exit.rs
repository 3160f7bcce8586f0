//! How the program ends: exit codes, and the one error of the command line.

use crate::app::AppError;
use std::process::ExitCode;

/// Exit codes; they are part of the interface and shown in `emanet --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// It did not work, or what was looked at is not well.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Refused: the input is not valid, or the present state does not allow it.
    Refused = 3,
    /// There is no such thing.
    NotFound = 4,
    /// No server and no data directory to work on, or it cannot be reached.
    Unreachable = 5,
}

/// The exit codes, for `--help`.
pub(super) const HELP: &str = "\
Exit codes:
  0  done
  1  it did not work, or what was looked at is not well
  2  the command line is wrong
  3  refused: the input is not valid, or the present state does not allow it
  4  there is no such thing
  5  no server and no data directory to work on, or it cannot be reached

Data goes to standard output, everything else to standard error.
https://github.com/emanet/emanet";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command ends without success.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    /// The exit code.
    pub exit: Exit,
    /// What is wrong and what to do; empty if it has been said.
    pub message: String,
}

impl Failed {
    /// With a message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
        }
    }

    /// Without another word: the output has said it.
    pub fn said(exit: Exit) -> Self {
        Self::new(exit, "")
    }
}

impl From<AppError> for Failed {
    fn from(error: AppError) -> Self {
        let exit = match error {
            AppError::Configuration(_) | AppError::DataDir(_) | AppError::File { .. } => {
                Exit::Refused
            }
            _ => Exit::Failed,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self::new(Exit::Failed, format!("cannot write the output: {error}"))
    }
}
