//! The file that keeps this end's secret key and the public keys of those it trusts.
//!
//! One `word key` a line, `#` begins a comment: `secret` once, `peer` for each peer, `shared` at most once. The
//! file must belong to its user alone; it is never printed, and never overwritten.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use prrt::{Keys, PublicKey, SecretKey};

/// Permission bits that let others in.
const OTHERS: u32 = 0o077;

/// Why there are no keys. Every text names the file.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The system refuses.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
    /// Others may read it.
    #[error("{path}: mode is {mode:o}, allowed: readable by its owner alone (chmod 600)", path = .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A line is none of those allowed.
    #[error("{path}:{line}: {why}", path = .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counts from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// Something is missing.
    #[error("{path}: {what} is missing", path = .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What.
        what: &'static str,
    },
}

/// Reads the keys for a connection.
///
/// # Errors
/// [`KeyFileError`]; a file without any peer is refused, since nobody could connect.
pub fn read(path: &Path) -> Result<Keys, KeyFileError> {
    let keys = read_own(path)?;
    if keys.peers.is_empty() {
        return Err(missing(path, "a line `peer KEY`"));
    }
    Ok(keys)
}

/// Reads the keys, with or without peers.
///
/// # Errors
/// [`KeyFileError`].
pub fn read_own(path: &Path) -> Result<Keys, KeyFileError> {
    let failed = |source| io_error(path, source);
    let mode = fs::metadata(path).map_err(failed)?.mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(KeyFileError::Open {
            path: path.to_owned(),
            mode,
        });
    }
    parse(path, &fs::read_to_string(path).map_err(failed)?)
}

/// Makes a file with a new secret key and returns the public half.
///
/// # Errors
/// [`KeyFileError`]; a file that exists is left alone.
pub fn create(path: &Path) -> Result<PublicKey, KeyFileError> {
    let secret = SecretKey::generate().map_err(|error| KeyFileError::Line {
        path: path.to_owned(),
        line: 0,
        why: error.to_string(),
    })?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let write = |mut file: fs::File| writeln!(file, "secret {}", *secret.to_hex());
    options
        .open(path)
        .and_then(write)
        .map_err(|source| io_error(path, source))?;
    Ok(secret.public())
}

/// Adds a peer, once.
///
/// # Errors
/// [`KeyFileError`].
pub fn trust(path: &Path, peer: PublicKey) -> Result<(), KeyFileError> {
    if read_own(path)?.peers.contains(&peer) {
        return Ok(());
    }
    let append = |mut file: fs::File| writeln!(file, "peer {peer}");
    OpenOptions::new()
        .append(true)
        .open(path)
        .and_then(append)
        .map_err(|source| io_error(path, source))
}

fn parse(path: &Path, text: &str) -> Result<Keys, KeyFileError> {
    let (mut secret, mut peers, mut shared) = (None, Vec::new(), None);
    for (at, line) in text.lines().enumerate() {
        let wrong = |why: String| KeyFileError::Line {
            path: path.to_owned(),
            line: at + 1,
            why,
        };
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some((word, key)) = line.split_once(char::is_whitespace) else {
            if line.is_empty() {
                continue;
            }
            return Err(wrong(
                "a line is `secret KEY`, `peer KEY` or `shared KEY`".into(),
            ));
        };
        let bad_key = |error: prrt::KeyError| wrong(error.to_string());
        match word {
            "secret" if secret.is_none() => secret = Some(key.parse().map_err(bad_key)?),
            "shared" if shared.is_none() => shared = Some(key.parse().map_err(bad_key)?),
            "peer" => peers.push(key.parse().map_err(bad_key)?),
            "secret" | "shared" => {
                return Err(wrong(format!("{word} is there twice, allowed: once")));
            }
            other => {
                let why = format!("{other:?} is not allowed; allowed: secret, peer, shared");
                return Err(wrong(why));
            }
        }
    }
    let secret = secret.ok_or_else(|| missing(path, "a line `secret KEY`"))?;
    Ok(Keys {
        secret,
        peers,
        shared,
    })
}

fn io_error(path: &Path, source: io::Error) -> KeyFileError {
    KeyFileError::Io {
        path: path.to_owned(),
        source,
    }
}

fn missing(path: &Path, what: &'static str) -> KeyFileError {
    KeyFileError::Missing {
        path: path.to_owned(),
        what,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_new_file_is_private_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let public = create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(read_own(&path).unwrap().secret.public(), public);
        assert!(create(&path).unwrap_err().to_string().contains("keys"));
        assert_eq!(read_own(&path).unwrap().secret.public(), public);
    }

    #[test]
    fn peers_are_added_once_and_needed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        create(&path).unwrap();
        let peer = create(&other).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("peer KEY"));
        trust(&path, peer).unwrap();
        trust(&path, peer).unwrap();
        assert_eq!(read(&path).unwrap().peers, [peer]);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(
            read_own(&path)
                .unwrap_err()
                .to_string()
                .contains("chmod 600")
        );
    }

    #[test]
    fn every_slip_names_file_and_line() {
        let path = Path::new("keys");
        let key = "ab".repeat(32);
        for (text, part) in [
            (String::new(), "secret KEY"),
            (format!("secret {key}\nfriend {key}"), "keys:2"),
            (format!("secret {key}\nsecret {key}"), "twice"),
            ("secret abc".into(), "64 hexadecimal"),
            (format!("# mine\nsecret {key}\npeer"), "keys:3"),
        ] {
            let error = parse(path, &text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
