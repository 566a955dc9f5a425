//! The two output streams: results to standard output, complaints to standard error.
//!
//! A reader that went away (`openlink … | head`) ends the output, not the program.

use std::fmt::Display;
use std::io::Write as _;

use serde::Serialize;

/// One line of result on standard output.
pub(crate) fn line(text: impl Display) {
    let _closed_pipe = writeln!(std::io::stdout().lock(), "{text}");
}

/// An error with those of its causes that its text does not name already, on standard error.
pub(crate) fn error(error: &anyhow::Error) {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            let colon = if text.is_empty() { "" } else { ": " };
            text = format!("{text}{colon}{cause}");
        }
    }
    let _closed_pipe = writeln!(std::io::stderr().lock(), "openlink: {text}");
}

/// One value as a line of JSON on standard output.
pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => line(text),
        Err(failure) => error(&anyhow::Error::new(failure)),
    }
}
