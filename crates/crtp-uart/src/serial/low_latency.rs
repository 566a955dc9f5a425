//! The low-latency flag of a serial port, which shortens the latency timer of USB adapters (16 ms to 1 ms on
//! FTDI). Owns the two system calls for it; a port that does not know the flag stays as it is.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::fmt;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, Setter};

#[cfg(any(target_arch = "mips", target_arch = "mips64"))]
const TIOCGSERIAL: Opcode = 0x5484;
#[cfg(any(target_arch = "mips", target_arch = "mips64"))]
const TIOCSSERIAL: Opcode = 0x5485;
#[cfg(not(any(target_arch = "mips", target_arch = "mips64")))]
const TIOCGSERIAL: Opcode = 0x541e;
#[cfg(not(any(target_arch = "mips", target_arch = "mips64")))]
const TIOCSSERIAL: Opcode = 0x541f;

/// `ASYNC_LOW_LATENCY`, linux/tty_flags.h.
const LOW_LATENCY: c_int = 1 << 13;

/// `struct serial_struct`, linux/serial.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct SerialStruct {
    kind: c_int,
    line: c_int,
    port: c_uint,
    irq: c_int,
    flags: c_int,
    xmit_fifo_size: c_int,
    custom_divisor: c_int,
    baud_base: c_int,
    close_delay: u16,
    io_type: c_char,
    reserved_char: c_char,
    hub6: c_int,
    closing_wait: u16,
    closing_wait2: u16,
    iomem_base: *mut c_void,
    iomem_reg_shift: u16,
    port_high: c_uint,
    iomap_base: c_ulong,
}

/// What became of the wish for low latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowLatency {
    /// It was on already.
    Already,
    /// It is on now.
    Set,
    /// The port knows it and keeps it off; this may need privileges.
    Refused,
    /// The port does not know it, as pseudo-terminals.
    NotAvailable,
}

impl LowLatency {
    /// Asks a port for low latency and reads back what took effect.
    pub(super) fn ask(port: BorrowedFd<'_>) -> Self {
        match get(port) {
            Err(_) => Self::NotAvailable,
            Ok(found) if found.flags & LOW_LATENCY != 0 => Self::Already,
            Ok(found) => Self::set(port, found),
        }
    }

    fn set(port: BorrowedFd<'_>, mut wanted: SerialStruct) -> Self {
        wanted.flags |= LOW_LATENCY;
        let done = set(port, wanted).and_then(|()| get(port));
        match done {
            Ok(now) if now.flags & LOW_LATENCY != 0 => Self::Set,
            Ok(_) | Err(_) => Self::Refused,
        }
    }
}

impl fmt::Display for LowLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Already | Self::Set => "on",
            Self::Refused => "refused",
            Self::NotAvailable => "not available",
        })
    }
}

fn get(port: BorrowedFd<'_>) -> Result<SerialStruct, Errno> {
    // SAFETY: TIOCGSERIAL writes one `serial_struct`, of which `SerialStruct` has the layout; any bytes are a
    // valid value of it.
    unsafe { rustix::ioctl::ioctl(port, Getter::<TIOCGSERIAL, SerialStruct>::new()) }
}

fn set(port: BorrowedFd<'_>, wanted: SerialStruct) -> Result<(), Errno> {
    // SAFETY: TIOCSSERIAL reads one `serial_struct`; the kernel does not follow its pointer, and all but one
    // flag are what the kernel gave us.
    unsafe { rustix::ioctl::ioctl(port, Setter::<TIOCSSERIAL, SerialStruct>::new(wanted)) }
}
