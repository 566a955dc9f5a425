//! Two network namespaces with a device each, made and removed with `ip`. Removed again when dropped, whatever happened.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tun;

/// Address of end a.
pub(super) const ADDRESS_A: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Address of end b.
pub(super) const ADDRESS_B: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// Why a path could not be emulated.
#[derive(Debug, thiserror::Error)]
pub enum EmulationError {
    /// `ip` did not do its work. Needs root and iproute2.
    #[error(
        "`{command}` failed: {reason}; namespaces need root (CAP_SYS_ADMIN) and iproute2, the form with --udp needs neither"
    )]
    Ip {
        /// The command.
        command: String,
        /// What it said.
        reason: String,
    },
    /// A namespace of that name is there already.
    #[error(
        "network namespace {0} is there already; choose another name, or remove it with `ip netns del {0}`"
    )]
    Exists(String),
    /// No TUN device. Needs root and the `tun` driver.
    #[error(
        "no TUN device in network namespace {namespace}: {source}; the form with --udp needs none"
    )]
    Tun {
        /// The namespace.
        namespace: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// No thread, no socket, no clock.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Names of the two namespaces.
#[derive(Debug)]
pub struct Namespaces {
    names: [String; 2],
    made: usize,
}

impl Namespaces {
    /// Makes `PREFIX-a` and `PREFIX-b`, with loopback up.
    ///
    /// # Errors
    /// They exist, or `ip` cannot make them.
    pub fn create(prefix: &str) -> Result<Self, EmulationError> {
        let mut pair = Self {
            names: [format!("{prefix}-a"), format!("{prefix}-b")],
            made: 0,
        };
        for end in 0..2 {
            let name = pair.names[end].clone();
            if path(&name).exists() {
                return Err(EmulationError::Exists(name));
            }
            ip(&["netns", "add", &name])?;
            pair.made += 1;
            ip(&["-n", &name, "link", "set", "lo", "up"])?;
        }
        Ok(pair)
    }

    /// The names, end a first.
    pub const fn names(&self) -> &[String; 2] {
        &self.names
    }

    /// A TUN device in each, with an address, and everything routed through it.
    pub(super) fn open_devices(&self) -> Result<[File; 2], EmulationError> {
        Ok([self.device(0, ADDRESS_A)?, self.device(1, ADDRESS_B)?])
    }

    fn device(&self, end: usize, address: Ipv4Addr) -> Result<File, EmulationError> {
        let name = &self.names[end];
        let file = tun::open_in(&path(name)).map_err(|source| EmulationError::Tun {
            namespace: name.clone(),
            source,
        })?;
        let address = format!("{address}/24");
        let device = tun::DEVICE;
        ip(&["-n", name, "address", "add", &address, "dev", device])?;
        ip(&[
            "-n",
            name,
            "link",
            "set",
            "dev",
            device,
            "up",
            "multicast",
            "on",
        ])?;
        ip(&["-n", name, "route", "add", "default", "dev", device])?;
        Ok(file)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in self.names.iter().take(self.made) {
            // What cannot be removed stays for the user to see; there is nobody left to tell here.
            let _stays = ip(&["netns", "del", name]);
        }
    }
}

fn path(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

fn ip(words: &[&str]) -> Result<(), EmulationError> {
    let failed = |reason: String| EmulationError::Ip {
        command: format!("ip {}", words.join(" ")),
        reason,
    };
    let output = Command::new("ip")
        .args(words)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(
        String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    ))
}
