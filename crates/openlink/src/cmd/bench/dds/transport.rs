//! Which transport the middleware is to use, and how each middleware is told.
//!
//! It knows environment variables and configuration files, and starts nothing.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// How samples travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TransportKind {
    /// Whatever the middleware does by itself: Fast DDS takes shared memory on one host and UDP beyond it.
    #[default]
    Default,
    /// Shared memory alone.
    Shm,
    /// UDP alone.
    Udp,
    /// TCP and shared memory for data, UDP for discovery (Fast DDS).
    LargeData,
    /// As the environment of the runner says.
    Environment,
}

/// A transport and its settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Transport {
    pub(super) kind: TransportKind,
    /// Send and receive buffer that UDP sockets ask for, bytes; absent: the kernel's default.
    pub(super) socket_buffer: Option<u32>,
    /// Longest datagram, bytes; absent: the middleware's.
    pub(super) max_message: Option<u32>,
}

/// Variables that choose a transport; all are cleared before a cell's own are set.
pub(super) const VARIABLES: [&str; 5] = [
    "FASTDDS_BUILTIN_TRANSPORTS",
    "FASTDDS_DEFAULT_PROFILES_FILE",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "RMW_FASTRTPS_USE_QOS_FROM_XML",
    "CYCLONEDDS_URI",
];

impl Transport {
    /// A short name.
    pub(super) fn label(&self) -> String {
        let kind = match self.kind {
            TransportKind::Default => "default",
            TransportKind::Shm => "shm",
            TransportKind::Udp => "udp",
            TransportKind::LargeData => "large_data",
            TransportKind::Environment => "environment",
        };
        let buffer = self
            .socket_buffer
            .map(|n| format!(" {} buffers", latency::results::size(n as usize)));
        let message = self.max_message.map(|n| format!(" {n} B datagrams"));
        [Some(kind.to_owned()), buffer, message]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Variables for a process of middleware `rmw`, with a configuration file in `folder` where one is needed.
    ///
    /// # Errors
    /// Why this middleware cannot do it, in words for a "not available" cell.
    pub(super) fn environment(
        &self,
        rmw: &str,
        folder: &Path,
    ) -> Result<Vec<(String, String)>, String> {
        let set = |key: &str, value: String| (key.to_owned(), value);
        let plain = self.socket_buffer.is_none() && self.max_message.is_none();
        let cyclone = rmw.contains("cyclonedds");
        if !cyclone && !rmw.contains("fastrtps") && rmw != "default" {
            return if self.kind == TransportKind::Default && plain {
                Ok(Vec::new())
            } else {
                Err(format!("{rmw} is not told its transport by this program"))
            };
        }
        Ok(match self.kind {
            TransportKind::Environment => Vec::new(),
            TransportKind::Default if plain => Vec::new(),
            TransportKind::Default | TransportKind::Udp if cyclone => {
                vec![set("CYCLONEDDS_URI", self.cyclone())]
            }
            TransportKind::Shm | TransportKind::LargeData if cyclone => {
                return Err(format!("{rmw} has no transport {}", self.label()));
            }
            TransportKind::Udp if plain => vec![set("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4".into())],
            TransportKind::Udp => {
                let file = self
                    .write_fast_dds(folder)
                    .map_err(|error| error.to_string())?;
                let keys = [
                    "FASTDDS_DEFAULT_PROFILES_FILE",
                    "FASTRTPS_DEFAULT_PROFILES_FILE",
                ];
                keys.map(|key| set(key, file.clone())).to_vec()
            }
            TransportKind::Shm if plain => vec![set("FASTDDS_BUILTIN_TRANSPORTS", "SHM".into())],
            TransportKind::LargeData => {
                let buffers = self.socket_buffer.map(|n| format!("sockets_size={n}"));
                let message = self.max_message.map(|n| format!("max_msg_size={n}"));
                let options: Vec<String> = buffers.into_iter().chain(message).collect();
                let mark = if options.is_empty() { "" } else { "?" };
                let value = format!("LARGE_DATA{mark}{}", options.join("&"));
                vec![set("FASTDDS_BUILTIN_TRANSPORTS", value)]
            }
            TransportKind::Default | TransportKind::Shm => {
                return Err("socket_buffer and max_message are for udp and large_data".to_owned());
            }
        })
    }

    fn write_fast_dds(&self, folder: &Path) -> std::io::Result<String> {
        let path = folder.join(format!("fastdds-{}.xml", self.label().replace(' ', "-")));
        std::fs::create_dir_all(folder)?;
        std::fs::write(&path, self.fast_dds())?;
        Ok(std::path::absolute(&path)?.to_string_lossy().into_owned())
    }

    /// A Fast DDS profile that replaces the built-in transports by UDP with these settings.
    fn fast_dds(&self) -> String {
        let tag = |name: &str, value: Option<u32>| {
            value.map_or_else(String::new, |value| format!("<{name}>{value}</{name}>"))
        };
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns="http://www.eprosima.com">
  <profiles>
    <transport_descriptors>
      <transport_descriptor>
        <transport_id>udp</transport_id>
        <type>UDPv4</type>
        {}{}{}
      </transport_descriptor>
    </transport_descriptors>
    <participant profile_name="udp" is_default_profile="true">
      <rtps>
        <userTransports><transport_id>udp</transport_id></userTransports>
        <useBuiltinTransports>false</useBuiltinTransports>
      </rtps>
    </participant>
  </profiles>
</dds>
"#,
            tag("sendBufferSize", self.socket_buffer),
            tag("receiveBufferSize", self.socket_buffer),
            tag("maxMessageSize", self.max_message),
        )
    }

    /// A Cyclone DDS configuration with these settings.
    fn cyclone(&self) -> String {
        let tag = |name: &str, attribute: &str, value: Option<u32>| match value {
            Some(value) if attribute.is_empty() => format!("<{name}>{value}B</{name}>"),
            Some(value) => format!("<{name} {attribute}=\"{value}B\"/>"),
            None => String::new(),
        };
        format!(
            "<CycloneDDS><Domain><General>{}</General><Internal>{}{}</Internal></Domain></CycloneDDS>",
            tag("MaxMessageSize", "", self.max_message),
            tag("SocketReceiveBufferSize", "min", self.socket_buffer),
            tag("SocketSendBufferSize", "min", self.socket_buffer),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(socket_buffer: Option<u32>) -> Transport {
        Transport {
            kind: TransportKind::Udp,
            socket_buffer,
            max_message: None,
        }
    }

    #[test]
    fn fast_dds_gets_a_variable_or_a_profile_file() {
        let folder = tempfile::tempdir().unwrap();
        let plain = udp(None)
            .environment("rmw_fastrtps_cpp", folder.path())
            .unwrap();
        assert_eq!(
            plain,
            [("FASTDDS_BUILTIN_TRANSPORTS".to_owned(), "UDPv4".to_owned())]
        );
        let large = udp(Some(4 << 20))
            .environment("default", folder.path())
            .unwrap();
        let text = std::fs::read_to_string(&large[0].1).unwrap();
        assert!(text.contains("<receiveBufferSize>4194304</receiveBufferSize>"));
        assert!(!text.contains("maxMessageSize"));
        assert!(
            large
                .iter()
                .all(|(key, _)| VARIABLES.contains(&key.as_str()))
        );
    }

    #[test]
    fn what_a_middleware_cannot_do_is_said() {
        let folder = Path::new(".");
        let shm = Transport {
            kind: TransportKind::Shm,
            ..Transport::default()
        };
        assert!(
            shm.environment("rmw_cyclonedds_cpp", folder)
                .unwrap_err()
                .contains("shm")
        );
        assert!(
            udp(None)
                .environment("rmw_zenoh_cpp", folder)
                .unwrap_err()
                .contains("rmw_zenoh_cpp")
        );
        assert_eq!(
            Transport::default().environment("rmw_zenoh_cpp", folder),
            Ok(Vec::new())
        );
        let cyclone = udp(Some(1000))
            .environment("rmw_cyclonedds_cpp", folder)
            .unwrap();
        assert!(
            cyclone[0]
                .1
                .contains("SocketReceiveBufferSize min=\"1000B\"")
        );
    }

    #[test]
    fn labels_tell_settings_apart() {
        assert_eq!(udp(None).label(), "udp");
        assert_eq!(udp(Some(4 << 20)).label(), "udp 4 MiB buffers");
    }
}
