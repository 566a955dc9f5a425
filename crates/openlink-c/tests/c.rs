//! The C functions over a real link: the simulated drone in the same process, and the paced transport.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "C functions; a test that cannot go on has failed"
)]

use std::ffi::{CStr, CString, c_char};
use std::time::{Duration, Instant};

use openlink_c::*;

const PATIENCE: Duration = Duration::from_secs(20);

fn open(uri: &str) -> Result<*mut Handle, String> {
    let (uri, mut error) = (CString::new(uri).unwrap(), [0 as c_char; 400]);
    // SAFETY: a C string and a buffer with its length.
    let link = unsafe { openlink_open(uri.as_ptr(), error.as_mut_ptr(), error.len()) };
    if link.is_null() {
        // SAFETY: a failure writes a C string.
        return Err(unsafe { CStr::from_ptr(error.as_ptr()) }
            .to_str()
            .unwrap()
            .to_owned());
    }
    Ok(link)
}

fn status(link: *const Handle) -> (i32, f64, String) {
    let (mut quality, mut text) = (0.0, [0 as c_char; 200]);
    // SAFETY: the link is not freed; the buffer comes with its length and gets a C string.
    let (state, text) = unsafe {
        let state = openlink_status(link, &raw mut quality, text.as_mut_ptr(), text.len());
        (
            state,
            CStr::from_ptr(text.as_ptr()).to_str().unwrap().to_owned(),
        )
    };
    (state, quality, text)
}

fn wait_state(link: *const Handle, wanted: i32) {
    let end = Instant::now() + PATIENCE;
    while status(link).0 != wanted {
        assert!(Instant::now() < end, "{:?}", status(link));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The next packet with this port and channel.
fn receive(link: *const Handle, kind: u8) -> Vec<u8> {
    let end = Instant::now() + PATIENCE;
    loop {
        let mut bytes = [0; 31];
        // SAFETY: the link is not freed and the buffer has 31 bytes.
        let length = unsafe { openlink_receive(link, bytes.as_mut_ptr(), 1000) };
        if length > 0 && bytes[0] & 0xf3 == kind {
            return bytes[..length as usize].to_vec();
        }
        assert!(length >= 0 && Instant::now() < end);
    }
}

fn send(link: *const Handle, bytes: &[u8]) -> i32 {
    // SAFETY: the link is not freed.
    unsafe { openlink_send(link, bytes.as_ptr(), bytes.len()) }
}

fn free(link: *mut Handle) {
    // SAFETY: nobody uses it any more.
    unsafe { openlink_free(link) };
}

#[test]
fn a_packet_goes_there_and_its_answer_comes_back() {
    let link = open("sim://").unwrap();
    wait_state(link, 1);
    assert_eq!(send(link, &[0xdd, 0]), 0);
    assert_eq!(receive(link, 0xd1)[1..], [0, 12, 0, 0, 0]);
    assert_eq!((send(link, &[]), send(link, &[0; 32])), (-3, -3));
    free(link);
}

#[test]
fn closing_ends_a_wait_in_another_thread() {
    let link = open("prrt://127.0.0.1:9/20").unwrap();
    let shared = link as usize;
    let waiting = std::thread::spawn(move || {
        let mut bytes = [0; 31];
        // SAFETY: it is freed after this thread has ended.
        unsafe { openlink_receive(shared as *const Handle, bytes.as_mut_ptr(), 60_000) }
    });
    let began = Instant::now();
    // SAFETY: the link is not freed.
    unsafe { openlink_close(link) };
    assert!(waiting.join().unwrap() <= 0 && began.elapsed() < PATIENCE);
    assert_eq!((send(link, &[0xfd, 0]), status(link).0), (-1, 3));
    free(link);
}

#[test]
fn over_the_paced_transport_the_quality_is_known() {
    let port = std::net::UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let drone = open(&format!("prrt://127.0.0.1:{port}?listen=1")).unwrap();
    let ground = open(&format!("prrt://127.0.0.1:{port}/20")).unwrap();
    wait_state(ground, 1);
    wait_state(drone, 1);
    let end = Instant::now() + PATIENCE;
    while !(0.5..=1.0).contains(&status(ground).1) {
        assert_eq!(send(ground, &[0xfc, 1, 2]), 0);
        assert_eq!(receive(drone, 0xf0), [0xfc, 1, 2]);
        assert!(Instant::now() < end, "{:?}", status(ground));
    }
    free(drone);
    wait_state(ground, 2);
    free(ground);
}

#[test]
fn what_is_no_link_is_refused_in_words_that_fit() {
    for (uri, word) in [
        ("prrt://x", "host:port"),
        ("serial://x", "scheme"),
        ("prrt://192.0.2.1:1", "insecure"),
    ] {
        let error = open(uri).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
    let (uri, mut error) = (CString::new("ä://").unwrap(), [7 as c_char; 2]);
    // SAFETY: a C string and a buffer with its length.
    let link = unsafe { openlink_open(uri.as_ptr(), error.as_mut_ptr(), 2) };
    assert!(link.is_null());
    assert_eq!(error, [0, 7], "half a character is none");
}
