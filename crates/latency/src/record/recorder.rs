//! The thread that empties the rings into the file.

use std::io::{self, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tap::{Rings, Tap};

use super::file::{HostInfo, LogError, LogFile, create};
use crate::time::MonoNs;

/// How often rings are emptied. A reader sees records at most this old.
const PERIOD: Duration = Duration::from_millis(20);
/// Least CPU share for the writer.
const NICE: i32 = 19;

/// What a recorder did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Records handed to the file; after a failure the last few may be missing from it.
    pub written: u64,
    /// Records that found a full ring or no file to go to.
    pub dropped: u64,
    /// Why nothing is written any more.
    pub problem: Option<String>,
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    written: AtomicU64,
    rings: Arc<Rings>,
    problem: Mutex<Option<String>>,
    warn: fn(&str),
}

impl Shared {
    fn fail(&self, error: &io::Error) {
        let text = format!("the packet log is no longer written: {error}");
        if self.problem().is_none() {
            (self.warn)(&text);
        }
        self.problem().get_or_insert(text);
    }

    /// The lock is only ever held for a look or one change.
    fn problem(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a log until it is finished or dropped.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Begins a log of this `host` with these `links`, numbered from 0. When the log can no longer be written, `warn`
    /// is called once, from the writer's thread.
    ///
    /// # Errors
    /// The file cannot be created. Fly on without a log, after one warning.
    pub fn start(
        path: &Path,
        host: &str,
        links: &[&str],
        warn: fn(&str),
    ) -> Result<Self, LogError> {
        let file = create(path, HostInfo::here(host, links))?;
        Self::on(file, warn).map_err(|source| LogError::Io {
            path: path.to_owned(),
            source,
        })
    }

    /// Writes into an open log.
    pub(super) fn on<W: Write + Seek + Send + 'static>(
        file: LogFile<W>,
        warn: fn(&str),
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            written: AtomicU64::new(0),
            rings: Rings::new(),
            problem: Mutex::new(None),
            warn,
        });
        let for_writer = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("packet-log".to_owned())
            .spawn(move || write(&for_writer, file))?;
        Ok(Self {
            shared,
            writer: Some(writer),
        })
    }

    /// A tap for one thread. Takes all the memory it needs.
    #[must_use]
    pub fn tap(&self) -> Tap {
        self.shared.rings.tap()
    }

    /// What was done so far.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            written: self.shared.written.load(Ordering::Relaxed),
            dropped: self.shared.rings.dropped(),
            problem: self.shared.problem().clone(),
        }
    }

    /// Writes what is left, ends the file and says what was done.
    #[must_use]
    pub fn finish(mut self) -> Status {
        self.end();
        self.status()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(writer) = self.writer.take() {
            writer.thread().unpark();
            if writer.join().is_err() {
                let text = "the log's writer ended unexpectedly".to_owned();
                *self.shared.problem() = Some(text);
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

/// The writer's thread: empties the rings into the file. After the first failure it goes on emptying them, so that
/// every record that does not reach the file is counted.
fn write<W: Write + Seek>(shared: &Shared, file: LogFile<W>) {
    // On Linux this is the priority of the calling thread. Refused or not, the log is written.
    let _refused = rustix::process::setpriority_process(None, NICE);
    let mut file = Some(file);
    let mut noted = 0;
    loop {
        let last = shared.stop.load(Ordering::Acquire);
        if let Err(error) = empty(shared, file.as_mut(), &mut noted) {
            shared.fail(&error);
            file = None;
            shared.rings.discard();
        }
        if last {
            break;
        }
        std::thread::park_timeout(PERIOD);
    }
    if let Some(Err(error)) = file.map(LogFile::finish) {
        shared.fail(&error);
    }
}

fn empty<W: Write + Seek>(
    shared: &Shared,
    file: Option<&mut LogFile<W>>,
    noted: &mut u64,
) -> io::Result<()> {
    let Some(file) = file else {
        shared.rings.discard();
        return Ok(());
    };
    shared.rings.drain(|hop| {
        file.write(hop)?;
        shared.written.fetch_add(1, Ordering::Relaxed);
        Ok::<_, io::Error>(())
    })?;
    let dropped = shared.rings.dropped();
    if dropped != *noted {
        file.write_dropped(dropped, MonoNs::now())?;
        *noted = dropped;
    }
    file.flush()
}
