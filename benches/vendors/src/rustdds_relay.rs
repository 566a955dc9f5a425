//! The relay on RustDDS.

use anyhow::{Context as _, Result, anyhow};
use futures::StreamExt as _;
use latency::MonoNs;
use rustdds::policy::{Durability, History, Reliability};
use rustdds::{DomainParticipant, Duration, QosPolicyBuilder, TopicKind};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::Args;
use crate::message::{RttProbe, TYPE_NAME, dds_topic};

/// Samples either end keeps, as the default profile of ROS does.
const DEPTH: i32 = 10;
/// Longest time a reliable writer waits for room.
const MAX_BLOCKING: Duration = Duration::from_millis(100);

/// Echoes until SIGINT or SIGTERM.
///
/// # Errors
/// What RustDDS says when it makes its entities, and the first sample that cannot be read or written.
pub fn run(args: &Args) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (stop, stopped) = futures::channel::oneshot::channel::<()>();
    std::thread::spawn(move || {
        signals.forever().next();
        drop(stop);
    });
    let reliability = if args.best_effort {
        Reliability::BestEffort
    } else {
        Reliability::Reliable {
            max_blocking_time: MAX_BLOCKING,
        }
    };
    let qos = QosPolicyBuilder::new()
        .reliability(reliability)
        .durability(Durability::Volatile)
        .history(History::KeepLast { depth: DEPTH })
        .build();
    let participant = DomainParticipant::new(args.domain).context("participant")?;
    let topic = |name: &str| {
        participant
            .create_topic(
                dds_topic(name),
                TYPE_NAME.to_owned(),
                &qos,
                TopicKind::NoKey,
            )
            .with_context(|| format!("topic {name}"))
    };
    let (probe, echo) = (topic(&args.probe_topic)?, topic(&args.echo_topic)?);
    let reader = participant
        .create_subscriber(&qos)?
        .create_datareader_no_key_cdr::<RttProbe>(&probe, None)?;
    let writer = participant
        .create_publisher(&qos)?
        .create_datawriter_no_key_cdr::<RttProbe>(&echo, None)?;
    eprintln!("relay is up: RustDDS, domain {}", args.domain);
    let mut echoed = 0_u64;
    let echo_all = async {
        let mut samples = std::pin::pin!(reader.async_sample_stream());
        while let Some(sample) = samples.next().await {
            let mut message = sample
                .map_err(|error| anyhow!("cannot read a probe: {error}"))?
                .into_value();
            message.relay_received_ns = MonoNs::now().0 as i64;
            message.relay_sent_ns = MonoNs::now().0 as i64;
            let sequence = message.sequence;
            writer
                .async_write(message, None)
                .await
                .map_err(|error| anyhow!("cannot echo probe {sequence}: {error}"))?;
            echoed += 1;
        }
        anyhow::Ok(())
    };
    let ended = futures::executor::block_on(async {
        use futures::future::Either;
        match futures::future::select(std::pin::pin!(echo_all), stopped).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => Ok(()),
        }
    });
    eprintln!("relay ends: {echoed} echoed");
    ended
}
