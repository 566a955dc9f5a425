//! A pseudo-terminal that stands for a UART: the simulator and the tests hold the master, a host opens the
//! slave as it would open `/dev/ttyAMA0`. Owns the pair and an optional symbolic link; writes nothing itself.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// Why there is no pseudo-terminal.
#[derive(Debug, thiserror::Error)]
pub enum PtyError {
    /// The system has none to give.
    #[error("no pseudo-terminal: {0}")]
    Open(#[from] io::Error),
    /// Something that is no symbolic link to a pseudo-terminal is in the way; it stays untouched.
    #[error("{} exists and is no symbolic link to a pseudo-terminal, choose another path", .0.display())]
    InTheWay(PathBuf),
    /// Another program's pseudo-terminal is linked there; it stays untouched.
    #[error("{} is in use by another program; end it, or remove the link if it is stale", .0.display())]
    InUse(PathBuf),
    /// The symbolic link could not be made.
    #[error("cannot link {link} to the pseudo-terminal: {source}", link = .0.display(), source = .1)]
    Link(PathBuf, io::Error),
}

/// A pair in raw mode. The master never blocks and, as the slave is kept open here, never fails while no host
/// has the slave open.
#[derive(Debug)]
pub struct Pty {
    master: OwnedFd,
    _slave: OwnedFd,
    path: PathBuf,
    link: Option<PathBuf>,
}

impl Pty {
    /// Makes a pair, and `link` a symbolic link to its slave. An older symbolic link there is replaced.
    ///
    /// # Errors
    /// [`PtyError`].
    pub fn open(link: Option<&Path>) -> Result<Self, PtyError> {
        let (master, slave, path) = pair().map_err(io::Error::from)?;
        let mut pty = Self {
            master,
            _slave: slave,
            path,
            link: None,
        };
        if let Some(link) = link {
            make_link(&pty.path, link)?;
            pty.link = Some(link.to_owned());
        }
        Ok(pty)
    }

    /// The slave's own path, `/dev/pts/N`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a host opens: the symbolic link if there is one, else the slave's own path.
    #[must_use]
    pub fn host_path(&self) -> &Path {
        self.link.as_deref().unwrap_or(&self.path)
    }
}

impl AsFd for Pty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

impl AsRawFd for Pty {
    fn as_raw_fd(&self) -> RawFd {
        self.master.as_raw_fd()
    }
}

impl Drop for Pty {
    /// Removes the link, unless another pair has taken it over. What remains is replaced by the next pair.
    fn drop(&mut self) {
        if let Some(link) = &self.link
            && std::fs::read_link(link).is_ok_and(|target| target == self.path)
        {
            let _stays = std::fs::remove_file(link);
        }
    }
}

fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd, PathBuf)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    let mut termios = tcgetattr(&slave)?;
    termios.make_raw();
    tcsetattr(&slave, OptionalActions::Now, &termios)?;
    rustix::fs::fcntl_setfl(&master, OFlags::NONBLOCK)?;
    let path = OsString::from_vec(ptsname(&master, Vec::new())?.into_bytes());
    Ok((master, slave, path.into()))
}

fn make_link(target: &Path, link: &Path) -> Result<(), PtyError> {
    match std::fs::symlink_metadata(link) {
        Ok(_) if !is_pty_link(link) => return Err(PtyError::InTheWay(link.to_owned())),
        Ok(_) if link.exists() => return Err(PtyError::InUse(link.to_owned())),
        Ok(_) => std::fs::remove_file(link).map_err(|e| PtyError::Link(link.to_owned(), e))?,
        Err(_) => {}
    }
    std::os::unix::fs::symlink(target, link).map_err(|e| PtyError::Link(link.to_owned(), e))
}

/// Whether `link` was made by [`Pty::open`], of this program or another.
fn is_pty_link(link: &Path) -> bool {
    std::fs::read_link(link).is_ok_and(|target| target.starts_with("/dev/pts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_replaces_a_stale_link_and_goes_with_the_pair() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("cf");
        std::os::unix::fs::symlink("/dev/pts/none", &link).unwrap();
        let pty = Pty::open(Some(&link)).unwrap();
        assert_eq!(std::fs::read_link(&link).unwrap(), pty.path());
        drop(pty);
        assert!(std::fs::symlink_metadata(&link).is_err());
    }

    #[test]
    fn a_regular_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("notes");
        std::fs::write(&file, "mine").unwrap();
        let error = Pty::open(Some(&file)).unwrap_err();
        assert!(error.to_string().contains("notes"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    }

    #[test]
    fn a_live_link_of_another_program_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("cf");
        let first = Pty::open(Some(&link)).unwrap();
        let error = Pty::open(Some(&link)).unwrap_err();
        assert!(error.to_string().contains("in use"), "{error}");
        assert_eq!(std::fs::read_link(&link).unwrap(), first.path());
    }

    #[test]
    fn a_link_to_anything_but_a_pseudo_terminal_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("serial0");
        for target in ["/dev/null", "ttyAMA0"] {
            std::os::unix::fs::symlink(target, &link).unwrap();
            assert!(Pty::open(Some(&link)).is_err());
            assert_eq!(std::fs::read_link(&link).unwrap(), Path::new(target));
            std::fs::remove_file(&link).unwrap();
        }
    }
}
