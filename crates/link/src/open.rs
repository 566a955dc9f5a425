//! From a URI to a link that is opening.
//!
//! Everything that can fail for good fails here: names that do not resolve, ports that are taken. What may
//! still come (a drone, a peer, a device) is the link's own business.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Instant;

use crate::interface::Link;
use crate::key_file;
use crate::prrt::{PrrtLink, PrrtOptions};
use crate::pty::PtyLink;
use crate::sim::SimLink;
use crate::tcp::{TcpClient, TcpServer};
use crate::uart::{UartConfig, UartError, UartLink};
use crate::udp::{UdpClient, UdpServer};
use crate::uri::{NetUri, PrrtUri, RadioUri, Role, UartUri, Uri};

/// Why a link cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The host has no address.
    #[error("{uri}: host {host:?} has no address: {source}")]
    Resolve {
        /// The link.
        uri: String,
        /// The name.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// The system refuses.
    #[error("{uri}: cannot {what}: {source}")]
    System {
        /// The link.
        uri: String,
        /// What was tried.
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The transport refuses.
    #[error("{uri}: {source}")]
    Prrt {
        /// The link.
        uri: String,
        /// What the transport says.
        source: ::prrt::Error,
    },
    /// The port is in use, forbidden, or no serial port. The text names it.
    #[error(transparent)]
    Uart(#[from] UartError),
    /// The keys cannot be used. The text names the file.
    #[error(transparent)]
    Keys(#[from] key_file::KeyFileError),
    /// There is no pseudo-terminal to be had.
    #[error(transparent)]
    Pty(#[from] crtp_uart::pty::PtyError),
    /// This build has no driver for it.
    #[error(
        "{uri}: {scheme}:// is not in this build, build it with: cargo build --features {feature}"
    )]
    NoDriver {
        /// The link.
        uri: String,
        /// Its scheme.
        scheme: &'static str,
        /// The cargo feature that has the driver.
        feature: &'static str,
    },
}

/// Opens the link that `uri` names; `role` decides who calls whom where the URI leaves it open.
///
/// # Errors
/// [`OpenError`], naming the URI and what is wrong.
pub fn open(now: Instant, uri: &Uri, role: Role) -> Result<Box<dyn Link>, OpenError> {
    match uri {
        Uri::Udp(net) => open_udp(now, uri, net, role),
        Uri::Prrt(prrt) => open_prrt(now, uri, prrt, role),
        Uri::Uart(uart) => open_uart(now, uart),
        Uri::Sim(sim) => {
            let config = simulator::Config {
                seed: sim.seed,
                ..simulator::Config::default()
            };
            Ok(Box::new(SimLink::new(now, config)))
        }
        Uri::Pty(path) => Ok(Box::new(PtyLink::open(path, now)?)),
        Uri::Tcp(net) => open_tcp(now, uri, net, role),
        Uri::Radio(radio) => open_radio(uri, radio),
    }
}

fn open_uart(now: Instant, uart: &UartUri) -> Result<Box<dyn Link>, OpenError> {
    let link = UartLink::open(UartConfig::from(uart), now)?;
    Ok(Box::new(link))
}

fn open_udp(now: Instant, uri: &Uri, net: &NetUri, role: Role) -> Result<Box<dyn Link>, OpenError> {
    let address = resolve(uri, net)?;
    if net.listens(role) {
        let server = UdpServer::bind_row(address, net.clients)
            .map_err(|source| system(uri, "listen", source))?;
        Ok(Box::new(server))
    } else if net.clients > 1 {
        let text = format!(
            "clients={} is for those who listen: add listen=1",
            net.clients
        );
        Err(system(
            uri,
            "call",
            io::Error::new(io::ErrorKind::InvalidInput, text),
        ))
    } else {
        let client =
            UdpClient::connect(now, address).map_err(|source| system(uri, "connect", source))?;
        Ok(Box::new(client))
    }
}

fn open_tcp(now: Instant, uri: &Uri, net: &NetUri, role: Role) -> Result<Box<dyn Link>, OpenError> {
    let address = resolve(uri, net)?;
    if net.listens(role) {
        let server = TcpServer::bind(address).map_err(|source| system(uri, "listen", source))?;
        return Ok(Box::new(server));
    }
    Ok(Box::new(TcpClient::connect(now, address)))
}

fn open_prrt(
    now: Instant,
    uri: &Uri,
    prrt: &PrrtUri,
    role: Role,
) -> Result<Box<dyn Link>, OpenError> {
    let address = resolve(uri, &prrt.net)?;
    let options = PrrtOptions {
        target_delay: prrt.target_delay,
        insecure: prrt.insecure,
        keys: prrt.keys.as_deref().map(key_file::read).transpose()?,
        keep_alive: prrt.keep_alive,
    };
    let link = if prrt.net.listens(role) {
        PrrtLink::listen(now, address, options)
    } else {
        PrrtLink::connect(now, address, options)
    };
    let boxed = link.map(|link| Box::new(link) as Box<dyn Link>);
    boxed.map_err(|source| OpenError::Prrt {
        uri: uri.to_string(),
        source,
    })
}

fn resolve(uri: &Uri, net: &NetUri) -> Result<SocketAddr, OpenError> {
    let unresolved = |source| OpenError::Resolve {
        uri: uri.to_string(),
        host: net.host.clone(),
        source,
    };
    let mut addresses = (net.host.as_str(), net.port)
        .to_socket_addrs()
        .map_err(unresolved)?;
    let first = addresses
        .next()
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
    first.map_err(unresolved)
}

fn system(uri: &Uri, what: &'static str, source: io::Error) -> OpenError {
    OpenError::System {
        uri: uri.to_string(),
        what,
        source,
    }
}

#[cfg(feature = "radio")]
fn open_radio(uri: &Uri, radio: &RadioUri) -> Result<Box<dyn Link>, OpenError> {
    let link = crate::radio::RadioLink::open(&radio.address);
    let boxed = link.map(|link| Box::new(link) as Box<dyn Link>);
    boxed.map_err(|source| system(uri, "start the radio", source))
}

#[cfg(not(feature = "radio"))]
fn open_radio(uri: &Uri, _radio: &RadioUri) -> Result<Box<dyn Link>, OpenError> {
    Err(OpenError::NoDriver {
        uri: uri.to_string(),
        scheme: "radio",
        feature: "radio",
    })
}
