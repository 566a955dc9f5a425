//! The way from a hop to the file: one lock-free ring a thread, and the thread that empties them.

use std::io::{self, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rtrb::{Consumer, Producer, RingBuffer};

use super::Hop;
use super::file::{HostInfo, LogError, LogFile, create};
use crate::time::MonoNs;

/// Records a ring holds: two seconds of 16 kHz.
const RING: usize = 1 << 15;
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

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    written: AtomicU64,
    dropped: AtomicU64,
    // Locked when a thread begins to record and when the writer looks for new rings, never for a record.
    rings: Mutex<Vec<Consumer<Hop>>>,
    problem: Mutex<Option<String>>,
}

/// Writes a log until it is finished or dropped.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

/// One thread's way into a log.
#[derive(Debug)]
pub struct Tap(Option<(Producer<Hop>, Arc<Shared>)>);

impl Tap {
    /// A tap that leads nowhere and costs one branch.
    #[must_use]
    pub const fn off() -> Self {
        Self(None)
    }

    /// Whether records go anywhere: ask before making one that takes work.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Hands a record over. Never blocks; with the ring full the record is dropped and counted.
    pub fn record(&mut self, hop: &Hop) {
        if let Some((ring, shared)) = &mut self.0
            && ring.push(*hop).is_err()
        {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Recorder {
    /// Begins a log of this `host` with these `links`, numbered from 0.
    ///
    /// # Errors
    /// The file cannot be created. Fly on without a log, after one warning.
    pub fn start(path: &Path, host: &str, links: &[&str]) -> Result<Self, LogError> {
        let file = create(path, HostInfo::here(host, links))?;
        Self::on(file).map_err(|source| LogError::Io {
            path: path.to_owned(),
            source,
        })
    }

    /// Writes into an open log.
    pub(super) fn on<W: Write + Seek + Send + 'static>(file: LogFile<W>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
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
        let (producer, consumer) = RingBuffer::new(RING);
        lock(&self.shared.rings).push(consumer);
        Tap(Some((producer, Arc::clone(&self.shared))))
    }

    /// What was done so far. A new `problem` is worth one warning.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            written: self.shared.written.load(Ordering::Relaxed),
            dropped: self.shared.dropped.load(Ordering::Relaxed),
            problem: lock(&self.shared.problem).clone(),
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
                *lock(&self.shared.problem) =
                    Some("the log's writer ended unexpectedly".to_owned());
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

/// A lock is only ever held for a push, a clone or a drain that cannot leave anything half done.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
            fail(shared, &error);
            file = None;
            discard(shared);
        }
        if last {
            break;
        }
        std::thread::park_timeout(PERIOD);
    }
    if let Some(Err(error)) = file.map(LogFile::finish) {
        fail(shared, &error);
    }
}

fn fail(shared: &Shared, error: &io::Error) {
    lock(&shared.problem)
        .get_or_insert_with(|| format!("the packet log is no longer written: {error}"));
}

fn empty<W: Write + Seek>(
    shared: &Shared,
    file: Option<&mut LogFile<W>>,
    noted: &mut u64,
) -> io::Result<()> {
    let Some(file) = file else {
        discard(shared);
        return Ok(());
    };
    let mut rings = lock(&shared.rings);
    let hops = rings
        .iter_mut()
        .flat_map(|ring| std::iter::from_fn(|| ring.pop().ok()));
    for hop in hops {
        file.write(&hop).inspect_err(|_| {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
        })?;
        shared.written.fetch_add(1, Ordering::Relaxed);
    }
    drop(rings);
    let dropped = shared.dropped.load(Ordering::Relaxed);
    if dropped != *noted {
        file.write_dropped(dropped, MonoNs::now())?;
        *noted = dropped;
    }
    file.flush()
}

/// Empties the rings and counts what was in them.
fn discard(shared: &Shared) {
    let mut rings = lock(&shared.rings);
    let hops = rings
        .iter_mut()
        .flat_map(|ring| std::iter::from_fn(|| ring.pop().ok()));
    shared
        .dropped
        .fetch_add(hops.count() as u64, Ordering::Relaxed);
}
