//! Results files: what every measuring program writes and the report reads.
//!
//! The schema is a contract: a reader refuses a schema it does not know and ignores fields it does not know.
//! Files are written whole or not at all.

mod host;
mod row;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use host::Host;
pub use row::{Identity, Intervals, Payload, Row, Stamps, size};

/// The schema this version writes and reads.
pub const SCHEMA: u32 = 1;

/// A results file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// The machine of the prober.
    pub host: Host,
    /// One row for each run.
    pub rows: Vec<Row>,
}

/// Why a results file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// It is no results file.
    #[error("{path}: no results file: {source}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Names the field, line and column.
        source: serde_json::Error,
    },
    /// It is a results file of another version.
    #[error("{path}: field schema is {found}, and only {SCHEMA} can be read")]
    Schema {
        /// The file.
        path: PathBuf,
        /// As found.
        found: serde_json::Value,
    },
}

impl Results {
    /// Rows measured on `host`.
    #[must_use]
    pub const fn new(host: Host, rows: Vec<Row>) -> Self {
        Self {
            schema: SCHEMA,
            host,
            rows,
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Unreadable, no results file, or another schema.
    pub fn read(path: &Path) -> Result<Self, ResultsError> {
        let text = std::fs::read_to_string(path).map_err(|source| io(path, source))?;
        Self::parse(path, &text)
    }

    /// Reads `text`; `path` is for the errors alone.
    ///
    /// # Errors
    /// No results file, or another schema.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ResultsError> {
        let format = |source| ResultsError::Format {
            path: path.to_owned(),
            source,
        };
        let value: serde_json::Value = serde_json::from_str(text).map_err(format)?;
        match value.get("schema") {
            Some(found) if *found != SCHEMA => Err(ResultsError::Schema {
                path: path.to_owned(),
                found: found.clone(),
            }),
            // From the text again, so that an error has its line and column.
            _ => serde_json::from_str(text).map_err(format),
        }
    }

    /// Writes the file whole: a reader sees the old one or the new one. Missing folders are made.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, path: &Path) -> Result<(), ResultsError> {
        let text = serde_json::to_vec_pretty(self).map_err(|source| ResultsError::Format {
            path: path.to_owned(),
            source,
        })?;
        write_whole(path, &text).map_err(|source| io(path, source))
    }

    /// Adds the rows of `other`; those of another machine keep their own host beside them.
    pub fn merge(&mut self, other: Self) {
        let elsewhere = !self.host.is_same_machine(&other.host);
        self.rows.extend(other.rows.into_iter().map(|mut row| {
            if elsewhere && row.host.is_none() {
                row.host = Some(Box::new(other.host.clone()));
            }
            row
        }));
    }

    /// Reads and merges files, in order.
    ///
    /// # Errors
    /// The first file that cannot be read.
    pub fn read_all(paths: &[PathBuf]) -> Result<Option<Self>, ResultsError> {
        let mut merged: Option<Self> = None;
        for path in paths {
            let results = Self::read(path)?;
            match &mut merged {
                Some(all) => all.merge(results),
                None => merged = Some(results),
            }
        }
        Ok(merged)
    }
}

/// Writes `bytes` next to `path` and renames the result. What is there and no regular file (a device, a pipe) is
/// written to, and a symbolic link stays one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return std::fs::OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(bytes);
    }
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let path = real.as_path();
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    rustix::fs::fchmod(&file, rustix::fs::Mode::from_raw_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}

fn io(path: &Path, source: std::io::Error) -> ResultsError {
    ResultsError::Io {
        path: path.to_owned(),
        source,
    }
}
