//! `openlink doctor uart` on a pseudo-terminal whose other end gives back what it gets, and on others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crtp_uart::Pty;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::tools::{Ended, run};

/// Runs it while `answer` makes what is written back of what was read.
fn doctor(mut answer: impl FnMut(&mut Vec<u8>) + Send + 'static) -> Ended {
    let pty = Pty::open(None).unwrap();
    let path = pty.path().to_string_lossy().into_owned();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let joined = std::thread::spawn(move || {
        let timeout = Timespec::try_from(Duration::from_millis(20)).unwrap();
        while !stopped.load(Ordering::Relaxed) {
            rustix::event::poll(&mut [PollFd::new(&pty, PollFlags::IN)], Some(&timeout)).unwrap();
            let mut bytes = vec![0; 512];
            let count = rustix::io::read(&pty, &mut bytes).unwrap_or(0);
            bytes.truncate(count);
            answer(&mut bytes);
            rustix::io::write(&pty, &bytes).unwrap();
        }
    });
    let ended = run(&["doctor", "uart", &path, "--frames", "20", "--json"]);
    stop.store(true, Ordering::Relaxed);
    joined.join().unwrap();
    ended
}

#[test]
fn a_joined_port_gives_every_frame_back() {
    let ended = doctor(|_| {});
    assert!(ended.status.success(), "{}", ended.err);
    let outcome = ended.json();
    assert_eq!(
        (&outcome["whole"], &outcome["bytes"]),
        (&20.into(), &36.into())
    );
    assert_eq!(
        (&outcome["line_us"], &outcome["baud"]),
        (&625.into(), &576_000.into())
    );
}

#[test]
fn a_flipped_bit_is_damage() {
    let mut frames = 0;
    let ended = doctor(move |bytes| {
        frames += u32::from(bytes.len() > 2);
        if frames == 7
            && let Some(byte) = bytes.get_mut(20)
        {
            *byte ^= 4;
            frames += 1;
        }
    });
    assert_eq!(ended.status.code(), Some(1), "{}", ended.err);
    assert_eq!(
        (&ended.json()["whole"], &ended.json()["damaged"]),
        (&19.into(), &1.into())
    );
}

#[test]
fn an_open_port_and_one_that_speaks_are_told_apart_and_get_no_frame() {
    let open = doctor(|bytes| {
        assert!(bytes.len() <= 2, "nothing but tokens: {bytes:02x?}");
        bytes.clear();
    });
    assert!(
        !open.status.success() && open.err.contains("join TX and RX"),
        "{}",
        open.err
    );
    let drone = doctor(|bytes| {
        assert!(
            bytes.is_empty(),
            "nothing is written to a drone: {bytes:02x?}"
        );
        bytes.extend([0xff, 0]);
    });
    assert!(
        !drone.status.success() && drone.err.contains("something speaks"),
        "{}",
        drone.err
    );
}
