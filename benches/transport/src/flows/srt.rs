//! SRT in live mode through the library of the system. `latency_ms`: its delay; `encrypt`: 1 or 0.
#![allow(
    unsafe_code,
    reason = "libsrt has a C interface and no maintained binding"
)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of_val;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use anyhow::bail;
use socket2::SockAddr;

use crate::clock::now_ns;
use crate::flow::{Class, Flow, Open, Received, Role, next};

// Declarations of srt/srt.h, version 1.5.
unsafe extern "C" {
    fn srt_startup() -> c_int;
    fn srt_create_socket() -> c_int;
    fn srt_bind(socket: c_int, name: *const c_void, length: c_int) -> c_int;
    fn srt_listen(socket: c_int, backlog: c_int) -> c_int;
    fn srt_accept(socket: c_int, name: *mut c_void, length: *mut c_int) -> c_int;
    fn srt_connect(socket: c_int, name: *const c_void, length: c_int) -> c_int;
    fn srt_setsockflag(socket: c_int, option: c_int, value: *const c_void, length: c_int) -> c_int;
    fn srt_sendmsg2(
        socket: c_int,
        data: *const c_char,
        length: c_int,
        control: *mut c_void,
    ) -> c_int;
    fn srt_recvmsg(socket: c_int, data: *mut c_char, length: c_int) -> c_int;
    fn srt_getlasterror_str() -> *const c_char;
}

const SRTO_SNDSYN: c_int = 1;
const SRTO_LATENCY: c_int = 23;
const SRTO_PASSPHRASE: c_int = 26;
/// Largest message of live mode, bytes.
const LARGEST: usize = 1456;

/// A connected socket; it lives as long as the process.
pub(crate) struct Srt {
    socket: c_int,
    inbox: Receiver<Received>,
}

impl Srt {
    pub(crate) fn open(how: &Open<'_>) -> anyhow::Result<Self> {
        // SAFETY: takes nothing.
        check(unsafe { srt_startup() })?;
        // SAFETY: takes nothing.
        let socket = check(unsafe { srt_create_socket() })?;
        set(
            socket,
            SRTO_LATENCY,
            &how.number::<c_int>("latency_ms", 120)?.to_ne_bytes(),
        )?;
        if how.number("encrypt", 1_u8)? == 1 {
            set(socket, SRTO_PASSPHRASE, b"a passphrase of both ends")?;
        }
        let socket = match how.role {
            Role::Client => connect(socket, how.addr)?,
            Role::Server => accept(socket, how.addr)?,
        };
        set(socket, SRTO_SNDSYN, &0_i32.to_ne_bytes())?;
        let (sender, inbox) = channel();
        thread::spawn(move || {
            let mut buffer = [0_u8; LARGEST];
            // SAFETY: the buffer is valid for the length given.
            while let Ok(count) =
                check(unsafe { srt_recvmsg(socket, buffer.as_mut_ptr().cast(), LARGEST as c_int) })
            {
                let data = buffer.get(..count as usize).unwrap_or_default().to_vec();
                if sender
                    .send(Received {
                        at_ns: now_ns(),
                        data,
                    })
                    .is_err()
                {
                    break;
                }
            }
        });
        Ok(Self { socket, inbox })
    }
}

fn connect(socket: c_int, addr: SocketAddr) -> anyhow::Result<c_int> {
    let addr = SockAddr::from(addr);
    // SAFETY: the address is valid for its length.
    check(unsafe { srt_connect(socket, addr.as_ptr().cast(), addr.len() as c_int) })?;
    Ok(socket)
}

fn accept(socket: c_int, addr: SocketAddr) -> anyhow::Result<c_int> {
    let addr = SockAddr::from(addr);
    // SAFETY: the address is valid for its length.
    check(unsafe { srt_bind(socket, addr.as_ptr().cast(), addr.len() as c_int) })?;
    // SAFETY: takes no pointer.
    check(unsafe { srt_listen(socket, 1) })?;
    // SAFETY: null means that the peer's address is not wanted.
    check(unsafe { srt_accept(socket, std::ptr::null_mut(), std::ptr::null_mut()) })
}

fn set(socket: c_int, option: c_int, value: &[u8]) -> anyhow::Result<()> {
    // SAFETY: the value is valid for its length.
    check(unsafe {
        srt_setsockflag(
            socket,
            option,
            value.as_ptr().cast(),
            size_of_val(value) as c_int,
        )
    })?;
    Ok(())
}

/// The result, or what the library says.
fn check(result: c_int) -> anyhow::Result<c_int> {
    if result >= 0 {
        return Ok(result);
    }
    // SAFETY: the text belongs to this thread until its next call into the library.
    let text = unsafe { CStr::from_ptr(srt_getlasterror_str()) };
    bail!("libsrt: {}", text.to_string_lossy())
}

impl Flow for Srt {
    fn send(&mut self, _class: Class, data: &[u8]) -> anyhow::Result<bool> {
        // SAFETY: the data is valid for its length; null means default control data.
        let sent = unsafe {
            srt_sendmsg2(
                self.socket,
                data.as_ptr().cast(),
                data.len() as c_int,
                std::ptr::null_mut(),
            )
        };
        Ok(sent >= 0)
    }

    fn recv(&mut self, until: Instant) -> anyhow::Result<Option<Received>> {
        next(&self.inbox, until)
    }
}
