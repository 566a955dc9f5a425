//! The packet log of a program that runs, if one is wanted. What goes wrong with it is worth one warning and never
//! stops anything.

use std::fmt;
use std::path::Path;

use tap::Tap;

use super::{Recorder, Status};

/// A log that is being written, or none.
#[derive(Debug, Default)]
pub struct Recording(Option<Recorder>);

impl Recording {
    /// Begins the log at `path` of this `program` with these `links`. `warn` is called at most once: when the file
    /// cannot be created, or later when it can no longer be written.
    #[must_use]
    pub fn start(path: &Path, program: &str, links: &[&str], warn: fn(&str)) -> Self {
        let host = format!("{} {program}", host_name());
        let recorder = Recorder::start(path, &host, links, warn);
        let failed =
            |error: &super::LogError| warn(&format!("going on without a packet log: {error}"));
        Self(recorder.inspect_err(failed).ok())
    }

    /// A tap for one thread; off where there is no log.
    #[must_use]
    pub fn tap(&self) -> Tap {
        self.0.as_ref().map_or_else(Tap::off, Recorder::tap)
    }

    /// Ends the log and says what is in it.
    #[must_use]
    pub fn finish(self) -> Option<Status> {
        self.0.map(Recorder::finish)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            written, dropped, ..
        } = self;
        write!(
            f,
            "packet log: {written} records written, {dropped} dropped"
        )
    }
}

fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
