//! A TUN device in a network namespace. Owns the one system call that no safe crate wraps; reads and writes nothing.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::thread;

use rustix::ioctl::{Opcode, Setter, ioctl, opcode};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Name of the device in each namespace.
pub(super) const DEVICE: &str = "radio0";

const IFF_TUN: i16 = 1;
const IFF_NO_PI: i16 = 0x1000;
const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);

/// `struct ifreq` of the kernel with the member that TUNSETIFF reads (`include/uapi/linux/if.h`).
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);

/// Opens a non-blocking TUN device in the namespace at `path` and keeps IPv6 out of it, whose neighbour discovery would be
/// counted as traffic.
pub(super) fn open_in(path: &Path) -> io::Result<File> {
    let namespace = File::open(path)?;
    // The namespace of a thread is for good, so a thread of its own goes there.
    let worker = thread::spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        switch_ipv6_off()?;
        open()
    });
    worker.join().unwrap_or_else(|_| {
        Err(io::Error::other(
            "the thread that opens the device broke down",
        ))
    })
}

fn switch_ipv6_off() -> io::Result<()> {
    for which in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
        match std::fs::write(path, "1") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn open() -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open("/dev/net/tun")?;
    let mut request = InterfaceRequest {
        name: [0; 16],
        flags: IFF_TUN | IFF_NO_PI,
        rest: [0; 22],
    };
    request.name[..DEVICE.len()].copy_from_slice(DEVICE.as_bytes());
    // SAFETY: TUNSETIFF reads one `ifreq`, which `InterfaceRequest` has the size and layout of; the descriptor is open.
    unsafe { ioctl(&file, Setter::<TUNSETIFF, InterfaceRequest>::new(request)) }?;
    Ok(file)
}
