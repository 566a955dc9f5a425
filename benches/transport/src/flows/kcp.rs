//! KCP in its fastest mode, flushing on every write. `interval_ms`: its clock; `resend`: acknowledgements until a fast repair.

use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_kcp::{KcpConfig, KcpListener, KcpNoDelayConfig, KcpStream};

use crate::clock::now_ns;
use crate::flow::{Class, Flow, Open, Received, Role, frame, next, unframe};

/// A stream whose tasks run on one thread of their own.
pub(crate) struct Kcp {
    outbox: UnboundedSender<Vec<u8>>,
    inbox: Receiver<Received>,
    _listener: Option<KcpListener>,
    _runtime: Runtime,
}

impl Kcp {
    pub(crate) fn open(how: &Open<'_>) -> anyhow::Result<Self> {
        let runtime = super::runtime()?;
        let config = KcpConfig {
            nodelay: KcpNoDelayConfig {
                nodelay: true,
                interval: how.number("interval_ms", 10)?,
                resend: how.number("resend", 1)?,
                nc: true,
            },
            flush_write: true,
            flush_acks_input: true,
            stream: true,
            ..KcpConfig::default()
        };
        let (role, addr) = (how.role, how.addr);
        // A listener that is dropped closes what it accepted.
        let (listener, mut stream) = runtime.block_on(async move {
            if role == Role::Client {
                return Ok((None, KcpStream::connect(&config, addr).await?));
            }
            let mut listener = KcpListener::bind(config, addr).await?;
            let (stream, _) = listener.accept().await?;
            Ok::<_, anyhow::Error>((Some(listener), stream))
        })?;
        let (outbox, mut waiting) = unbounded_channel::<Vec<u8>>();
        let (sender, inbox) = channel();
        runtime.spawn(async move {
            let (mut bytes, mut buffer) = (Vec::new(), vec![0; 65_536]);
            loop {
                tokio::select! {
                    message = waiting.recv() => {
                        let Some(message) = message else { return };
                        let written = stream.write_all(&message).await;
                        if written.is_err() || stream.flush().await.is_err() { return }
                    }
                    count = stream.read(&mut buffer) => {
                        let Ok(count) = count else { return };
                        if count == 0 { return }
                        bytes.extend_from_slice(&buffer[..count]);
                        let at_ns = now_ns();
                        unframe(&mut bytes, |data| drop(sender.send(Received { at_ns, data })));
                    }
                }
            }
        });
        Ok(Self {
            outbox,
            inbox,
            _listener: listener,
            _runtime: runtime,
        })
    }
}

impl Flow for Kcp {
    fn send(&mut self, _class: Class, data: &[u8]) -> anyhow::Result<bool> {
        let mut framed = Vec::new();
        frame(&mut framed, data);
        Ok(self.outbox.send(framed).is_ok())
    }

    fn recv(&mut self, until: Instant) -> anyhow::Result<Option<Received>> {
        next(&self.inbox, until)
    }
}
