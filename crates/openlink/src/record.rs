//! `--record FILE`: the packet log of a program that runs.
//!
//! A log that cannot be written is worth one warning and never stops anything.

use std::path::PathBuf;

use link::tap::{LinkTap, Place};
use tap::{Direction, Hop, MonoNs, Stage, Tap};

/// The option.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Record what happens to every packet in this file (MCAP), for `openlink trace`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl Args {
    /// Begins the log, if one is wanted.
    pub(crate) fn start(&self, program: &str, links: &[&str]) -> Recording {
        let path = self.record.as_deref();
        let start = |path| latency::record::Recording::start(path, program, links, warn);
        Recording(path.map(start).unwrap_or_default())
    }
}

fn warn(text: &str) {
    tracing::warn!("{text}");
}

/// A log that is being written, or none.
#[derive(Debug)]
pub(crate) struct Recording(latency::record::Recording);

impl Recording {
    /// A tap for link `link` of the log.
    pub(crate) fn tap(&self, link: u8, place: Place) -> LinkTap {
        LinkTap::new(self.raw_tap(), link, place)
    }

    /// A tap for whoever makes whole records.
    pub(crate) fn raw_tap(&self) -> Tap {
        self.0.tap()
    }

    /// Ends the log and says how much is in it.
    pub(crate) fn finish(self) {
        match self.0.finish() {
            Some(status) if status.dropped > 0 => tracing::warn!("{status}"),
            Some(status) => tracing::info!("{status}"),
            None => {}
        }
    }
}

/// Records of raw messages, which have a number of their own.
#[derive(Debug, Default)]
pub(crate) struct Messages(Tap);

impl Messages {
    pub(crate) const fn new(tap: Tap) -> Self {
        Self(tap)
    }

    /// A message passed, now. Numbers begin with 0, record ids with 1.
    pub(crate) fn note(&mut self, stage: Stage, direction: Direction, sequence: u64, bytes: &[u8]) {
        if self.0.is_on() {
            let id = sequence.wrapping_add(1).max(1);
            self.0
                .record(&Hop::new(MonoNs::now(), id, stage, direction, bytes));
        }
    }
}
