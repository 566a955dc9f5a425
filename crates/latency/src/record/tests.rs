//! Records through rings into files and back, files that end anywhere, and disks that are full.

use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::file::LogFile;
use super::layout::{decode, encode};
use super::*;
use crate::time::MonoNs;

fn hop(number: u64) -> Hop {
    let bytes = [0x5d, number as u8, 3];
    Hop {
        link: 1,
        attempt: 2,
        reason: Reason::Resend,
        ..Hop::new(
            MonoNs(1_000 + number),
            number,
            Stage::U2,
            Direction::Up,
            &bytes,
        )
    }
}

fn log_of(count: u64) -> (tempfile::TempDir, Contents, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.mcap");
    let recorder = Recorder::start(&path, "pi", &["prrt", "uart"], |_| {}).unwrap();
    let mut tap = recorder.tap();
    (0..count).for_each(|number| tap.record(&hop(number)));
    let status = recorder.finish();
    assert_eq!(
        status,
        Status {
            written: count,
            dropped: 0,
            problem: None
        }
    );
    let contents = read(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    (folder, contents, bytes)
}

#[test]
fn a_hop_has_its_layout() {
    let bytes = encode(&hop(7));
    assert_eq!(bytes.len(), 60);
    assert_eq!(
        bytes[..20],
        [
            0, 1, 0, 0, 0xef, 3, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0
        ]
    );
    assert_eq!(bytes[20..31], [3, 0, 10, 0, 1, 2, 1, 0, 0x5d, 7, 3]);
    assert_eq!(decode(&bytes), Some(hop(7)));
    assert_eq!(
        (hop(7).port(), hop(7).channel(), hop(7).bytes()),
        (5, 1, &[0x5d, 7, 3][..])
    );
}

#[test]
fn what_is_recorded_is_read_with_host_links_and_both_clocks() {
    let (_folder, contents, _) = log_of(1000);
    assert_eq!(contents.hops, (0..1000).map(hop).collect::<Vec<_>>());
    assert_eq!(
        (contents.cut, contents.dropped, contents.foreign),
        (false, 0, 0)
    );
    assert_eq!(
        (contents.host.name.as_str(), contents.host.links),
        ("pi", vec!["prrt".to_owned(), "uart".to_owned()])
    );
    assert!(contents.host.mono > MonoNs(0) && contents.host.unix_ns > 1_500_000_000_000_000_000);
}

#[test]
fn a_log_cut_at_every_byte_yields_all_whole_records_and_says_so() {
    let (_folder, whole, bytes) = log_of(20);
    let mut last = 0;
    for end in 0..bytes.len() {
        if let Ok(part) = read_bytes(&bytes[..end]) {
            assert_eq!(part.hops[..], whole.hops[..part.hops.len()]);
            assert!(part.hops.len() >= last, "{end}");
            last = part.hops.len();
            assert!(!part.cut || part.hops.len() <= 20);
        }
    }
    assert_eq!(last, 20);
    // The 20 messages lie at the end of the data, each with 9 + 22 bytes around the hop.
    let ends = (0..bytes.len())
        .filter(|&end| read_bytes(&bytes[..end]).is_ok_and(|part| part.hops.len() == 10));
    assert_eq!(ends.count(), HOP_LEN + 9 + 22);
}

#[test]
fn a_log_is_readable_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.mcap");
    let recorder = Recorder::start(&path, "ground", &[], |_| {}).unwrap();
    let mut tap = recorder.tap();
    tap.record(&hop(1));
    let limit = Instant::now() + Duration::from_secs(20);
    let seen = loop {
        let contents = read(&path).unwrap();
        if !contents.hops.is_empty() || Instant::now() > limit {
            break contents;
        }
        std::thread::yield_now();
    };
    assert_eq!((seen.hops, seen.cut), (vec![hop(1)], true));
    assert_eq!(recorder.finish().written, 1);
    assert!(!read(&path).unwrap().cut);
}

#[test]
fn a_full_ring_drops_and_counts_and_the_file_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.mcap");
    let recorder = Recorder::start(&path, "ground", &[], |_| {}).unwrap();
    let mut tap = recorder.tap();
    (0..2_000_000).for_each(|number| tap.record(&hop(number)));
    let status = recorder.finish();
    assert_eq!(status.written + status.dropped, 2_000_000);
    let contents = read(&path).unwrap();
    assert_eq!(
        (contents.hops.len() as u64, contents.dropped),
        (status.written, status.dropped)
    );
}

#[test]
fn unwritable_log_path_is_an_error_that_names_it() {
    for path in ["/nonexistent/log.mcap", "/dev/full"] {
        let error = Recorder::start(Path::new(path), "x", &[], |_| {})
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(&format!("{path}: ")), "{error}");
    }
}

/// A disk with room for so many bytes.
struct SmallDisk(Cursor<Vec<u8>>, usize);

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.get_ref().len() + bytes.len() > self.1 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for SmallDisk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

static WARNINGS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

#[test]
fn full_disk_stops_the_log_with_one_problem_and_counts_what_is_dropped() {
    let disk = SmallDisk(Cursor::default(), 200_000);
    let recorder = Recorder::on(LogFile::begin(disk, HostInfo::default()).unwrap(), |_| {
        WARNINGS.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    })
    .unwrap();
    let mut tap = recorder.tap();
    (0..20_000).for_each(|number| tap.record(&hop(number)));
    let status = recorder.finish();
    assert!(
        status
            .problem
            .as_ref()
            .is_some_and(|problem| problem.contains("no storage space")),
        "{status:?}"
    );
    assert!(status.written > 100 && status.dropped > 1000, "{status:?}");
    assert_eq!(status.written + status.dropped, 20_000);
    assert_eq!(WARNINGS.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[test]
fn what_is_no_log_is_refused() {
    let refused = |bytes: &[u8]| read_bytes(bytes).unwrap_err();
    assert!(!refused(b"").is_empty());
    assert!(!refused(b"hello, this is no log").is_empty());
    assert!(
        read(Path::new("/nonexistent"))
            .unwrap_err()
            .to_string()
            .starts_with("/nonexistent: ")
    );
}

proptest! {
    #[test]
    fn damaged_logs_never_panic(at in 0_usize..3000, value in any::<u8>()) {
        let bytes = {
            static LOG: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
            LOG.get_or_init(|| log_of(20).2)
        };
        let mut bytes = bytes.clone();
        let at = at % bytes.len();
        bytes[at] = value;
        let _ = read_bytes(&bytes);
    }

    #[test]
    fn random_bytes_are_no_hop_or_encode_to_themselves(bytes in prop::collection::vec(any::<u8>(), 60)) {
        if let Some(hop) = decode(&bytes) {
            prop_assert_eq!(&encode(&hop)[..], &bytes[..]);
        }
    }
}
