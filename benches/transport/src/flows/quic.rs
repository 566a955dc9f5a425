//! Datagrams of QUIC. `congestion`: `cubic`, `bbr` or `newreno`.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use anyhow::{Context as _, bail};
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::runtime::Runtime;

use crate::clock::now_ns;
use crate::flow::{Class, Flow, Open, Received, Role, next};

/// A connection whose tasks run on one thread of their own.
pub(crate) struct Quic {
    connection: Connection,
    inbox: Receiver<Received>,
    _endpoint: Endpoint,
    _runtime: Runtime,
}

impl Quic {
    pub(crate) fn open(how: &Open<'_>) -> anyhow::Result<Self> {
        let runtime = super::runtime()?;
        let (endpoint, connection) = runtime.block_on(connect(how))?;
        let (sender, inbox) = channel();
        let reader = connection.clone();
        runtime.spawn(async move {
            while let Ok(data) = reader.read_datagram().await {
                let received = Received {
                    at_ns: now_ns(),
                    data: data.to_vec(),
                };
                if sender.send(received).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            connection,
            inbox,
            _endpoint: endpoint,
            _runtime: runtime,
        })
    }
}

async fn connect(how: &Open<'_>) -> anyhow::Result<(Endpoint, Connection)> {
    let transport = Arc::new(transport(how)?);
    // Both ends make the same certificate file: the client trusts what the server wrote.
    let path = how
        .text("cert")
        .context("quic needs the setting cert=FILE")?;
    match how.role {
        Role::Server => {
            let made = rcgen::generate_simple_self_signed(vec!["bench".to_owned()])?;
            let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
            let mut config =
                ServerConfig::with_single_cert(vec![made.cert.der().clone()], key.into())?;
            config.transport_config(transport);
            let endpoint = Endpoint::server(config, how.addr)?;
            std::fs::write(path, made.cert.der())?;
            let incoming = endpoint.accept().await.context("the endpoint is closed")?;
            Ok((endpoint, incoming.await?))
        }
        Role::Client => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(CertificateDer::from(std::fs::read(path)?))?;
            let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
            config.transport_config(transport);
            let mut endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
            endpoint.set_default_client_config(config);
            let connection = endpoint.connect(how.addr, "bench")?.await?;
            Ok((endpoint, connection))
        }
    }
}

fn transport(how: &Open<'_>) -> anyhow::Result<TransportConfig> {
    let controller: Arc<dyn ControllerFactory + Send + Sync> =
        match how.text("congestion").unwrap_or("cubic") {
            "cubic" => Arc::new(CubicConfig::default()),
            "bbr" => Arc::new(BbrConfig::default()),
            "newreno" => Arc::new(NewRenoConfig::default()),
            other => bail!("setting congestion is {other:?}; allowed: cubic, bbr, newreno"),
        };
    let mut config = TransportConfig::default();
    config.congestion_controller_factory(controller);
    Ok(config)
}

impl Flow for Quic {
    fn send(&mut self, _class: Class, data: &[u8]) -> anyhow::Result<bool> {
        Ok(self.connection.send_datagram(data.to_vec().into()).is_ok())
    }

    fn recv(&mut self, until: Instant) -> anyhow::Result<Option<Received>> {
        next(&self.inbox, until)
    }
}
