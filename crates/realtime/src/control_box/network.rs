//! The link between box and responder: loopback, a virtual cable between two network namespaces, or real addresses.
//!
//! Owns making and describing the link; the namespaces vanish with the sockets in them.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
use rustix::thread::gettid;
use serde::{Deserialize, Serialize};

use crate::sys;
use crate::thread::facts::Permissions;
use crate::thread::refusal::{Refusal, Request};
use crate::thread::settings::errno_of;

const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const BOX_ADDRESS: &str = "10.77.0.1";
const RESPONDER_ADDRESS: &str = "10.77.0.2";
const PORT: u16 = 1337;
const CALL_EVERY: Duration = Duration::from_millis(100);
/// The datagram by which a responder makes itself known to a box elsewhere.
pub const HELLO: &[u8] = b"hello";

/// Which link to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkKind {
    /// A virtual cable where permitted, loopback elsewhere.
    #[default]
    Auto,
    /// Loopback; its large MTU hides fragmentation.
    Loopback,
    /// A virtual cable between two network namespaces, or a refusal.
    Veth,
}

impl FromStr for LinkKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "lo" | "loopback" => Ok(Self::Loopback),
            "veth" => Ok(Self::Veth),
            other => Err(format!("link: {other:?} is none of auto, lo, veth")),
        }
    }
}

/// Both ends of a link.
#[derive(Debug)]
pub struct Cable {
    /// The box's end, connected.
    pub near: UdpSocket,
    /// The responder's end, connected.
    pub far: UdpSocket,
    /// What it is.
    pub facts: LinkFacts,
    snmp: Option<File>,
}

/// What the link is, for the result file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFacts {
    /// `loopback`, `veth` or `network`.
    pub kind: String,
    /// Largest IP datagram that is not fragmented, bytes; none = unknown.
    pub mtu: Option<u32>,
    /// IP fragments of one state.
    pub state_fragments: Option<u32>,
    /// IP fragments of one reply.
    pub reply_fragments: Option<u32>,
    /// Why no virtual cable, where one was wanted.
    pub refusal: Option<Refusal>,
}

impl LinkFacts {
    /// Describes a connected socket's link.
    #[must_use]
    pub fn of(kind: &str, socket: &UdpSocket) -> Self {
        let v6 = socket.local_addr().is_ok_and(|address| address.is_ipv6());
        let mtu = if v6 {
            ipv6_mtu(socket).ok()
        } else {
            ip_mtu(socket).ok()
        };
        Self {
            kind: kind.to_owned(),
            mtu,
            state_fragments: mtu.map(|mtu| fragments(super::wire::STATE_BYTES, mtu)),
            reply_fragments: mtu.map(|mtu| fragments(super::wire::REPLY_BYTES, mtu)),
            refusal: None,
        }
    }
}

/// IPv4 fragments that a UDP payload needs: each carries a multiple of eight bytes behind a header of 20 (RFC 791).
#[must_use]
pub fn fragments(payload: usize, mtu: u32) -> u32 {
    let mtu = mtu as usize;
    let datagram = payload + UDP_HEADER;
    if datagram + IP_HEADER <= mtu {
        return 1;
    }
    let each = mtu.saturating_sub(IP_HEADER) / 8 * 8;
    u32::try_from(datagram.div_ceil(each.max(8))).unwrap_or(u32::MAX)
}

/// A link that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The virtual cable was asked for and refused.
    #[error("link veth: {0}")]
    Refused(Refusal),
    /// A socket.
    #[error("link: {0}")]
    Io(#[from] io::Error),
}

impl Cable {
    /// Makes the link.
    ///
    /// # Errors
    /// When a virtual cable is asked for and refused, or a socket cannot be made.
    pub fn lay(kind: LinkKind, mtu: u32) -> Result<Self, NetworkError> {
        match kind {
            LinkKind::Loopback => Ok(loopback()?),
            LinkKind::Veth => veth(mtu).map_err(|error| NetworkError::Refused(refusal(&error))),
            LinkKind::Auto => match veth(mtu) {
                Ok(cable) => Ok(cable),
                Err(error) => {
                    let mut cable = loopback()?;
                    cable.facts.refusal = Some(refusal(&error));
                    Ok(cable)
                }
            },
        }
    }

    /// IP fragments that the box's side has made so far; `None` where it cannot be told.
    pub fn fragments_made(&mut self) -> Option<u64> {
        let snmp = self.snmp.as_mut()?;
        let mut text = String::new();
        snmp.rewind().ok()?;
        snmp.read_to_string(&mut text).ok()?;
        snmp_number(&text, "Ip", "FragCreates")
    }
}

/// One number of the text of `/proc/net/snmp`: a line of names and a line of values with the same first word.
#[must_use]
pub fn snmp_number(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut rows = text
        .lines()
        .filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let at = rows
        .next()?
        .split_whitespace()
        .position(|word| word == name)?;
    rows.next()?.split_whitespace().nth(at)?.parse().ok()
}

fn refusal(error: &io::Error) -> Refusal {
    Refusal::diagnose(&Request::Namespace, errno_of(error), &Permissions::read())
}

fn loopback() -> io::Result<Cable> {
    let near = UdpSocket::bind("127.0.0.1:0")?;
    let far = UdpSocket::bind("127.0.0.1:0")?;
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    let facts = LinkFacts::of("loopback", &near);
    Ok(Cable {
        near,
        far,
        facts,
        snmp: None,
    })
}

/// Two threads move into namespaces of their own, lay the cable between them and leave only their sockets behind.
fn veth(mtu: u32) -> io::Result<Cable> {
    let (to_box, from_far) = channel();
    let (to_far, from_box) = channel();
    let far = thread::Builder::new().spawn(move || far_end(&to_box, &from_box))?;
    let near = thread::Builder::new().spawn(move || near_end(mtu, &from_far, &to_far))?;
    let near = join(near)?;
    let far = join(far)?;
    let (near, snmp) = near?;
    let facts = LinkFacts::of("veth", &near);
    Ok(Cable {
        near,
        far: far?,
        facts,
        snmp: Some(snmp),
    })
}

fn join<T>(handle: thread::JoinHandle<T>) -> io::Result<T> {
    handle
        .join()
        .map_err(|_| io::Error::other("a thread that lays the cable ended in a panic"))
}

fn near_end(
    mtu: u32,
    from_far: &Receiver<i32>,
    to_far: &Sender<()>,
) -> io::Result<(UdpSocket, File)> {
    sys::new_network_namespace()?;
    let peer = from_far
        .recv()
        .map_err(|_| io::Error::from(rustix::io::Errno::PERM))?
        .to_string();
    ip(&[
        "link",
        "add",
        "olbox",
        "mtu",
        &mtu.to_string(),
        "type",
        "veth",
        "peer",
        "name",
        "olresp",
        "mtu",
        &mtu.to_string(),
        "netns",
        &peer,
    ])?;
    ip(&["addr", "add", &format!("{BOX_ADDRESS}/30"), "dev", "olbox"])?;
    ip(&["link", "set", "olbox", "up"])?;
    let socket = UdpSocket::bind((BOX_ADDRESS, PORT))?;
    socket.connect((RESPONDER_ADDRESS, PORT))?;
    // The far end may have given up; its own error says why.
    let _far_end_gone = to_far.send(());
    Ok((socket, File::open("/proc/thread-self/net/snmp")?))
}

fn far_end(to_box: &Sender<i32>, from_box: &Receiver<()>) -> io::Result<UdpSocket> {
    sys::new_network_namespace()?;
    let _near_end_gone = to_box.send(gettid().as_raw_nonzero().get());
    from_box
        .recv()
        .map_err(|_| io::Error::from(rustix::io::Errno::PERM))?;
    ip(&[
        "addr",
        "add",
        &format!("{RESPONDER_ADDRESS}/30"),
        "dev",
        "olresp",
    ])?;
    ip(&["link", "set", "olresp", "up"])?;
    let socket = UdpSocket::bind((RESPONDER_ADDRESS, PORT))?;
    socket.connect((BOX_ADDRESS, PORT))?;
    Ok(socket)
}

/// Runs `ip` in the calling thread's namespace; a command that fails counts as "not permitted".
fn ip(arguments: &[&str]) -> io::Result<()> {
    let output = Command::new("ip").args(arguments).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(rustix::io::Errno::PERM.into())
}

/// Opens the socket of a box that waits for a responder on a real network, and waits for its first datagram.
///
/// # Errors
/// When the address cannot be bound, or nobody calls within `patience`.
pub fn wait_for_responder(listen: SocketAddr, patience: Duration) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(listen)?;
    socket.set_read_timeout(Some(patience))?;
    let mut hello = [0u8; 64];
    let (_, peer) = socket
        .recv_from(&mut hello)
        .map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no responder called within {patience:?}"),
            ),
            _ => error,
        })?;
    socket.connect(peer)?;
    Ok(socket)
}

/// Opens the socket of a responder and calls the box every 100 ms until it answers.
///
/// # Errors
/// When no socket can be made, or the box does not answer within `patience`.
pub fn call_box(peer: SocketAddr, patience: Duration, stop: &AtomicBool) -> io::Result<UdpSocket> {
    let any: SocketAddr = if peer.is_ipv6() {
        ([0u16; 8], 0).into()
    } else {
        ([0u8; 4], 0).into()
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer)?;
    socket.set_read_timeout(Some(CALL_EVERY))?;
    let give_up = Instant::now() + patience;
    while Instant::now() < give_up && !stop.load(Ordering::Relaxed) {
        let refused = socket.send(HELLO).is_err();
        match socket.peek(&mut [0u8; 8]) {
            Ok(_) => return Ok(socket),
            // The box is not there yet: the network says so at once, the caller waits all the same.
            Err(_) if refused => thread::sleep(CALL_EVERY),
            Err(_) => {}
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        format!("no box answered within {patience:?}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_needs_two_fragments_on_ethernet_and_one_on_loopback() {
        assert_eq!(fragments(2373, 1500), 2);
        assert_eq!(fragments(2373, 65_536), 1);
        assert_eq!(fragments(371, 1500), 1);
        assert_eq!(fragments(1472, 1500), 1);
        assert_eq!(fragments(1473, 1500), 2);
        assert_eq!(fragments(2373, 576), 5);
    }

    #[test]
    fn snmp_columns_are_found_by_name() {
        let text = "Ip: Forwarding FragCreates\nIp: 1 42\nUdp: InErrors\nUdp: 7\n";
        assert_eq!(snmp_number(text, "Ip", "FragCreates"), Some(42));
        assert_eq!(snmp_number(text, "Udp", "InErrors"), Some(7));
        assert_eq!(snmp_number(text, "Udp", "Missing"), None);
    }
}
