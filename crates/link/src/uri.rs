//! The text form of a link: `scheme://where?options`, parsed and checked once.
//!
//! A [`Uri`] holds only values that are allowed; nothing here opens, resolves or looks at the machine.

mod parts;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use parts::{Parts, Query};

/// UART speed of current firmware (`CPX_UART2_BAUDRATE`), bit/s.
pub const DEFAULT_BAUD: u32 = 576_000;
/// UART speed of the syslink dialect, bit/s.
pub const DEFAULT_SYSLINK_BAUD: u32 = 512_000;
/// Target delay of a `prrt://` link that names none, as cflib has it.
pub const DEFAULT_TARGET_DELAY: Duration = Duration::from_millis(50);

/// How CRTP packets are framed on a UART.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// CPX with clear-to-send tokens: firmware since July 2022.
    Cpx,
    /// Syslink: firmware from 2020 to 2022 built with the UART link.
    Syslink,
}

/// A UART.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UartUri {
    /// The device.
    pub path: PathBuf,
    /// Speed, bit/s.
    pub baud: u32,
    /// Framing.
    pub framing: Framing,
}

/// A host and port, and who calls whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetUri {
    /// Name or address, IPv6 without its brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// `listen=1` or `listen=0`, where given.
    pub listen: Option<bool>,
    /// `clients=N`: a listener waits for this many, each on a port of its own from `port` on. 1 to 16.
    pub clients: u16,
}

/// A paced transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrrtUri {
    /// Host and port.
    pub net: NetUri,
    /// For how long a setpoint is worth repairing.
    pub target_delay: Duration,
    /// `insecure=1`: plain text is allowed beyond this host.
    pub insecure: bool,
    /// `keys=/path`: encrypt with the keys in this file.
    pub keys: Option<PathBuf>,
    /// `keepalive=ms`: a sign of life at least this often, 10 to 400 ms. Below 100 ms it keeps a Wi-Fi radio from sleeping
    /// between beacons.
    pub keep_alive: Option<Duration>,
}

/// A Crazyradio address, passed on as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadioUri {
    /// What follows `radio://`.
    pub address: String,
}

/// A simulated drone inside this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimUri {
    /// Seed of its noise.
    pub seed: u64,
}

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uri {
    /// `uart:///dev/ttyAMA0?baud=576000&framing=cpx`
    Uart(UartUri),
    /// `prrt://host:port[/target_delay_ms][?listen=1][&keys=/path][&insecure=1][&keepalive=ms]`
    Prrt(PrrtUri),
    /// `udp://host:port[?listen=1][&clients=3]`: one CRTP packet a datagram, as cflib has it.
    Udp(NetUri),
    /// `tcp://host:port[?listen=1]`: CPX over TCP.
    Tcp(NetUri),
    /// `radio://0/80/2M/E7E7E7E7E7`
    Radio(RadioUri),
    /// `sim://[?seed=1]`
    Sim(SimUri),
    /// `pty:///tmp/crazyflie`: a pseudo-terminal for a client that knows serial ports only.
    Pty(PathBuf),
}

/// Which side of a bridge a link is on. It decides who calls whom where the URI leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Commands come from here: wait for callers.
    From,
    /// Commands go there: call.
    To,
}

/// Why a text is no link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{uri}: {part} is {value:?}, allowed: {allowed}")]
pub struct UriError {
    /// The whole text.
    pub uri: String,
    /// The part at fault.
    pub part: &'static str,
    /// Its value.
    pub value: String,
    /// What it may be.
    pub allowed: &'static str,
}

impl Uri {
    /// Whether this end waits for callers: `listen=` decides, then a wildcard address, then the side it is on.
    #[must_use]
    pub fn listens(&self, role: Role) -> bool {
        self.net().is_some_and(|net| net.listens(role))
    }

    /// Whether a drone (real or simulated) is at the other end, with no further bridge before it.
    #[must_use]
    pub fn faces_drone(&self, role: Role) -> bool {
        match self {
            Self::Uart(_) | Self::Radio(_) | Self::Sim(_) => true,
            Self::Udp(net) | Self::Tcp(net) => !net.listens(role),
            Self::Prrt(_) | Self::Pty(_) => false,
        }
    }

    /// Where it leads, without options: two links with the same place meet.
    #[must_use]
    pub fn place(&self) -> String {
        match self {
            Self::Uart(uart) => uart.path.display().to_string(),
            Self::Pty(path) => path.display().to_string(),
            Self::Prrt(prrt) => format!("udp://{}", prrt.net.address()),
            Self::Udp(net) => format!("udp://{}", net.address()),
            Self::Tcp(net) => format!("tcp://{}", net.address()),
            Self::Radio(radio) => format!("radio://{}", radio.address),
            Self::Sim(_) => "sim://".to_owned(),
        }
    }

    fn net(&self) -> Option<&NetUri> {
        match self {
            Self::Prrt(prrt) => Some(&prrt.net),
            Self::Udp(net) | Self::Tcp(net) => Some(net),
            Self::Uart(_) | Self::Radio(_) | Self::Sim(_) | Self::Pty(_) => None,
        }
    }
}

impl NetUri {
    /// See [`Uri::listens`].
    #[must_use]
    pub fn listens(&self, role: Role) -> bool {
        let wildcard = matches!(self.host.as_str(), "0.0.0.0" | "::");
        self.listen.unwrap_or(wildcard || role == Role::From)
    }
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let parts = Parts::split(text)?;
        match parts.scheme {
            "uart" => uart(&parts).map(Self::Uart),
            "prrt" => prrt(&parts).map(Self::Prrt),
            "udp" => udp(&parts).map(Self::Udp),
            "tcp" => tcp(&parts).map(Self::Tcp),
            "radio" => radio(&parts).map(Self::Radio),
            "sim" => sim(&parts).map(Self::Sim),
            "pty" => pty(&parts).map(Self::Pty),
            other => Err(parts.refuse("scheme", other, "uart, prrt, udp, tcp, radio, sim, pty")),
        }
    }
}

fn uart(parts: &Parts<'_>) -> Result<UartUri, UriError> {
    let mut query = parts.query()?;
    let framing = query.framing()?;
    let baud = query.number("baud", 9_600..=2_000_000, "9600 to 2000000 bit/s")?;
    query.end("baud, framing")?;
    if !parts.rest.starts_with('/') || parts.rest.len() < 2 {
        return Err(parts.refuse(
            "device",
            parts.rest,
            "an absolute path, as in uart:///dev/ttyAMA0",
        ));
    }
    let usual = match framing {
        Framing::Cpx => DEFAULT_BAUD,
        Framing::Syslink => DEFAULT_SYSLINK_BAUD,
    };
    Ok(UartUri {
        path: parts.rest.into(),
        baud: baud.map_or(usual, |baud| baud as u32),
        framing,
    })
}

fn pty(parts: &Parts<'_>) -> Result<PathBuf, UriError> {
    parts.query()?.end("none")?;
    if parts.rest.starts_with('/') && parts.rest.len() > 1 {
        return Ok(parts.rest.into());
    }
    Err(parts.refuse(
        "path",
        parts.rest,
        "an absolute path, as in pty:///tmp/crazyflie",
    ))
}

fn prrt(parts: &Parts<'_>) -> Result<PrrtUri, UriError> {
    let mut query = parts.query()?;
    let listen = query.flag("listen")?;
    let insecure = query.flag("insecure")?.unwrap_or(false);
    let keys = query.path("keys")?;
    let keep_alive = query.number("keepalive", 10..=400, "10 to 400 ms")?;
    query.end("listen, keys, insecure, keepalive")?;
    if insecure && keys.is_some() {
        return Err(parts.refuse("insecure", "1", "either keys=/path or insecure=1"));
    }
    let (address, delay) = parts.rest.split_once('/').unwrap_or((parts.rest, ""));
    Ok(PrrtUri {
        net: parts.address(address, listen)?,
        target_delay: target_delay(parts, delay)?,
        insecure,
        keys,
        keep_alive: keep_alive.map(Duration::from_millis),
    })
}

fn target_delay(parts: &Parts<'_>, text: &str) -> Result<Duration, UriError> {
    if text.is_empty() {
        return Ok(DEFAULT_TARGET_DELAY);
    }
    let milliseconds = text.parse().ok().filter(|ms| (1..=10_000).contains(ms));
    milliseconds
        .map(Duration::from_millis)
        .ok_or_else(|| parts.refuse("target delay", text, "1 to 10000 ms"))
}

fn tcp(parts: &Parts<'_>) -> Result<NetUri, UriError> {
    let mut query = parts.query()?;
    let listen = query.flag("listen")?;
    query.end("listen")?;
    parts.address(parts.rest, listen)
}

fn udp(parts: &Parts<'_>) -> Result<NetUri, UriError> {
    let mut query = parts.query()?;
    let listen = query.flag("listen")?;
    let clients = query.number("clients", 1..=16, "1 to 16")?.unwrap_or(1) as u16;
    query.end("listen, clients")?;
    let net = parts.address(parts.rest, listen)?;
    if clients > 1 && listen == Some(false) {
        return Err(parts.refuse("listen", "0", "1, as clients= is for those who listen"));
    }
    if net.port.checked_add(clients - 1).is_none() {
        let port = net.port.to_string();
        return Err(parts.refuse("port", &port, "a port for each client, up to 65535"));
    }
    Ok(NetUri { clients, ..net })
}

fn radio(parts: &Parts<'_>) -> Result<RadioUri, UriError> {
    if parts.rest.is_empty() {
        return Err(parts.refuse(
            "address",
            "",
            "dongle/channel/rate/address, as in 0/80/2M/E7E7E7E7E7",
        ));
    }
    let address = parts.text.trim_start_matches("radio://").to_owned();
    Ok(RadioUri { address })
}

fn sim(parts: &Parts<'_>) -> Result<SimUri, UriError> {
    let mut query: Query<'_> = parts.query()?;
    let seed = query
        .number("seed", 0..=u64::MAX, "a whole number from 0")?
        .unwrap_or(0);
    query.end("seed")?;
    if parts.rest.is_empty() {
        return Ok(SimUri { seed });
    }
    Err(parts.refuse("address", parts.rest, "nothing, as in sim://"))
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uart(uart) => uart.fmt(f),
            Self::Prrt(prrt) => prrt.fmt(f),
            Self::Udp(net) => write!(f, "udp://{net}"),
            Self::Tcp(net) => write!(f, "tcp://{net}"),
            Self::Radio(radio) => write!(f, "radio://{}", radio.address),
            Self::Sim(sim) => write!(f, "sim://?seed={}", sim.seed),
            Self::Pty(path) => write!(f, "pty://{}", path.display()),
        }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpx => "cpx",
            Self::Syslink => "syslink",
        })
    }
}

impl fmt::Display for UartUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "uart://{}?baud={}&framing={}",
            self.path.display(),
            self.baud,
            self.framing
        )
    }
}

impl fmt::Display for PrrtUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let delay = self.target_delay.as_millis();
        write!(f, "prrt://{}/{delay}", self.net.address())?;
        let listen = self
            .net
            .listen
            .map(|listen| format!("listen={}", u8::from(listen)));
        let insecure = self.insecure.then(|| "insecure=1".to_owned());
        let keys = self
            .keys
            .as_ref()
            .map(|path| format!("keys={}", path.display()));
        let keep_alive = self
            .keep_alive
            .map(|span| format!("keepalive={}", span.as_millis()));
        let options = listen.into_iter().chain(keys).chain(insecure);
        let options: Vec<_> = options.chain(keep_alive).collect();
        if options.is_empty() {
            return Ok(());
        }
        write!(f, "?{}", options.join("&"))
    }
}

impl NetUri {
    /// `host:port`, IPv6 in brackets.
    #[must_use]
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for NetUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address())?;
        let listen = self
            .listen
            .map(|listen| format!("listen={}", u8::from(listen)));
        let clients = (self.clients > 1).then(|| format!("clients={}", self.clients));
        let options: Vec<_> = listen.into_iter().chain(clients).collect();
        if options.is_empty() {
            return Ok(());
        }
        write!(f, "?{}", options.join("&"))
    }
}

#[cfg(test)]
mod tests;
