//! Tells the service manager that started us, where there is one, that the bridge is ready (systemd's protocol).

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends `READY=1` to the socket that `NOTIFY_SOCKET` names: a path, or an abstract name after `@`.
///
/// # Errors
/// The socket cannot be reached.
pub(super) fn tell(socket: &OsStr) -> std::io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"READY=1\n", &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_hears_that_we_are_ready() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        tell(path.as_os_str()).unwrap();
        let mut text = [0; 32];
        let length = manager.recv(&mut text).unwrap();
        assert_eq!(&text[..length], b"READY=1\n");
    }

    #[test]
    fn a_socket_that_is_not_there_is_an_error() {
        assert!(tell(OsStr::new("@openlink-no-such-socket")).is_err());
    }
}
