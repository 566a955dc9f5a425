//! A serial port in raw mode that never blocks. Owns opening, exclusive use and what took effect; it writes no
//! byte of its own, since a drone that reads garbage stops its motors.

mod low_latency;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, SpecialCodeIndex, Termios};
use serialport::{DataBits, FlowControl, Parity, StopBits, TTYPort};

pub use low_latency::LowLatency;

/// Why a port cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SerialError {
    /// Another program has it.
    #[error("{} is in use by another program (another bridge, a console, ModemManager?)", .0.display())]
    Busy(PathBuf),
    /// It is not there, or has just been unplugged. Trying again later may help.
    #[error("{path} cannot be opened: {source}", path = .0.display(), source = .1)]
    Missing(PathBuf, io::Error),
    /// The user may not open it.
    #[error("no permission for {}: add the user to group dialout", .0.display())]
    Denied(PathBuf),
    /// It is no serial port.
    #[error("{} is no serial port", .0.display())]
    NotSerial(PathBuf),
    /// The port runs at another speed than asked for, more than 3 % off: the drone would read garbage.
    #[error("{} runs at {got} bit/s, asked for: {asked}", .path.display())]
    Speed {
        /// The port.
        path: PathBuf,
        /// Speed asked for, bit/s.
        asked: u32,
        /// Speed in effect, bit/s.
        got: u32,
    },
    /// It refuses its settings.
    #[error("{} refuses {baud} bit/s, 8 data bits, no parity, 1 stop bit: {text}", .path.display())]
    Settings {
        /// The port.
        path: PathBuf,
        /// Speed asked for, bit/s.
        baud: u32,
        /// What the system says.
        text: String,
    },
}

/// An open port, 8 data bits, no parity, one stop bit, no flow control. Closed when dropped.
#[derive(Debug)]
pub struct Serial {
    port: TTYPort,
    speed: u32,
    paced: bool,
    low_latency: LowLatency,
}

impl Serial {
    /// Opens `path` at `baud` bit/s for this process alone, asks for low latency and drops what was received
    /// before.
    ///
    /// # Errors
    /// [`SerialError`], within the time of a few system calls; it never waits for another program.
    pub fn open(path: &Path, baud: u32) -> Result<Self, SerialError> {
        check_path(path)?;
        let text = path.to_string_lossy();
        let builder = serialport::new(text, baud)
            .data_bits(DataBits::Eight)
            .parity(Parity::None)
            .stop_bits(StopBits::One)
            .flow_control(FlowControl::None)
            .exclusive(true);
        let port = TTYPort::open(&builder).map_err(|error| refused(path, baud, &error))?;
        let mut serial = Self {
            port,
            speed: 0,
            paced: !is_pseudo_terminal(path),
            low_latency: LowLatency::NotAvailable,
        };
        serial.speed = serial.set_up().map_err(|error| errno(path, error))?;
        serial.low_latency = LowLatency::ask(serial.as_fd());
        serial.check_speed(path, baud)?;
        Ok(serial)
    }

    /// What `read` and `poll` rely on: a read gives what is there, at least one byte, and never waits.
    fn set_up(&self) -> Result<u32, Errno> {
        let fd = self.as_fd();
        let mut termios: Termios = rustix::termios::tcgetattr(fd)?;
        termios.special_codes[SpecialCodeIndex::VMIN] = 1;
        termios.special_codes[SpecialCodeIndex::VTIME] = 0;
        rustix::termios::tcsetattr(fd, OptionalActions::Now, &termios)?;
        rustix::fs::fcntl_setfl(fd, OFlags::NONBLOCK)?;
        rustix::termios::tcflush(fd, QueueSelector::IFlush)?;
        Ok(rustix::termios::tcgetattr(fd)?.output_speed())
    }

    fn check_speed(&self, path: &Path, asked: u32) -> Result<(), SerialError> {
        let got = self.speed;
        if u64::from(asked.abs_diff(got)) * 100 <= u64::from(asked) * 3 {
            return Ok(());
        }
        let path = path.to_owned();
        Err(SerialError::Speed { path, asked, got })
    }

    /// Speed in effect, bit/s.
    #[must_use]
    pub const fn speed(&self) -> u32 {
        self.speed
    }

    /// Whether bits leave at this speed: a pseudo-terminal hands bytes over at once.
    #[must_use]
    pub const fn is_paced(&self) -> bool {
        self.paced
    }

    /// What became of the wish for low latency.
    #[must_use]
    pub const fn low_latency(&self) -> LowLatency {
        self.low_latency
    }
}

impl AsRawFd for Serial {
    fn as_raw_fd(&self) -> RawFd {
        self.port.as_raw_fd()
    }
}

impl AsFd for Serial {
    #[allow(unsafe_code)]
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: `port` owns the descriptor, never gives it away, and lives as long as the borrow of `self`.
        unsafe { BorrowedFd::borrow_raw(self.port.as_raw_fd()) }
    }
}

/// Whether the path leads to the far end of a pseudo-terminal.
fn is_pseudo_terminal(path: &Path) -> bool {
    std::fs::canonicalize(path).is_ok_and(|real| real.starts_with("/dev/pts"))
}

/// Opening a file as a port does not say why it fails; its kind does.
fn check_path(path: &Path) -> Result<(), SerialError> {
    use std::os::unix::fs::FileTypeExt as _;
    match std::fs::metadata(path) {
        Ok(found) if found.file_type().is_char_device() => Ok(()),
        Ok(_) => Err(SerialError::NotSerial(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(SerialError::Denied(path.to_owned()))
        }
        Err(error) => Err(SerialError::Missing(path.to_owned(), error)),
    }
}

fn refused(path: &Path, baud: u32, error: &serialport::Error) -> SerialError {
    use serialport::ErrorKind;
    let text = error.description.clone();
    let path = path.to_owned();
    match error.kind {
        // The exclusive lock and EBUSY are the only causes of this kind.
        ErrorKind::NoDevice => SerialError::Busy(path),
        ErrorKind::InvalidInput => SerialError::Settings { path, baud, text },
        ErrorKind::Io(io::ErrorKind::PermissionDenied) => SerialError::Denied(path),
        ErrorKind::Io(kind) => SerialError::Missing(path, io::Error::new(kind, text)),
        // EIO, ENXIO and ENODEV, which a port gives while it goes away or comes, have no kind of their own.
        ErrorKind::Unknown => SerialError::Missing(path, io::Error::other(text)),
    }
}

fn errno(path: &Path, errno: Errno) -> SerialError {
    match errno {
        Errno::NOTTY => SerialError::NotSerial(path.to_owned()),
        other => SerialError::Missing(path.to_owned(), other.into()),
    }
}

#[cfg(test)]
mod tests {
    use rustix::termios::{LocalModes, OutputModes};

    use super::*;
    use crate::Pty;

    #[test]
    fn a_pseudo_terminal_opens_at_the_default_speed_without_low_latency() {
        let pty = Pty::open(None).unwrap();
        let serial = Serial::open(pty.path(), 576_000).unwrap();
        assert_eq!(serial.speed(), 576_000);
        assert_eq!(serial.low_latency(), LowLatency::NotAvailable);
        assert_eq!(serial.low_latency().to_string(), "not available");
        let termios = rustix::termios::tcgetattr(&serial).unwrap();
        let cooked = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        assert!(!termios.local_modes.intersects(cooked));
        assert!(!termios.output_modes.contains(OutputModes::OPOST));
    }

    #[test]
    fn a_second_instance_is_told_which_port_is_busy() {
        let pty = Pty::open(None).unwrap();
        let first = Serial::open(pty.path(), 576_000).unwrap();
        let error = Serial::open(pty.path(), 576_000).unwrap_err();
        assert!(matches!(error, SerialError::Busy(_)), "{error}");
        let path = pty.path().to_string_lossy().into_owned();
        assert!(error.to_string().contains(&path), "{error}");
        drop(first);
        Serial::open(pty.path(), 576_000).expect("free again once closed");
    }

    #[test]
    fn what_is_no_port_is_told_apart_from_what_is_not_there() {
        let missing = Serial::open(Path::new("/dev/no-such-port"), 576_000).unwrap_err();
        assert!(matches!(missing, SerialError::Missing(..)), "{missing}");
        let file = tempfile::NamedTempFile::new().unwrap();
        let regular = Serial::open(file.path(), 576_000).unwrap_err();
        assert!(matches!(regular, SerialError::NotSerial(_)), "{regular}");
    }

    #[test]
    fn reading_never_waits_and_opening_forgets_what_came_before() {
        let pty = Pty::open(None).unwrap();
        rustix::io::write(&pty, b"stale").unwrap();
        let serial = Serial::open(pty.path(), 576_000).unwrap();
        let mut bytes = [0; 16];
        assert_eq!(rustix::io::read(&serial, &mut bytes), Err(Errno::AGAIN));
        rustix::io::write(&pty, &[0xff, 0x0d, 0x0a, 0x11, 0x00, 0x03]).unwrap();
        assert_eq!(rustix::io::read(&serial, &mut bytes), Ok(6));
        assert_eq!(bytes[..6], [0xff, 0x0d, 0x0a, 0x11, 0x00, 0x03]);
    }
}
