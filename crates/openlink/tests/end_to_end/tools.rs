//! Programs that end with the test, and what they say.

use std::io::Read as _;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Long enough for a machine under load.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A running `openlink`; killed when the test lets go of it.
pub(crate) struct Program(Child);

/// What a program left behind.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }
}

impl Program {
    /// Starts `openlink` with these words.
    pub(crate) fn start(words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_openlink"));
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Asks it to end, and waits.
    pub(crate) fn stop(self, signal: Signal) -> Ended {
        self.signal(signal);
        self.wait()
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(mut self) -> Ended {
        let end = Instant::now() + LONG;
        let status = loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "the program did not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let (mut out, mut err) = (String::new(), String::new());
        self.0
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        self.0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        Ended { status, out, err }
    }

    /// Resident memory, bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
            * 1024
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// Starts and waits.
pub(crate) fn run(words: &[&str]) -> Ended {
    Program::start(words).wait()
}

/// A UDP port that nobody uses now.
pub(crate) fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Waits for a condition.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A simulated drone on a pseudo-terminal in its own folder.
pub(crate) struct Simulated {
    pub(crate) program: Program,
    pub(crate) uart: PathBuf,
    report: PathBuf,
    _folder: tempfile::TempDir,
}

impl Simulated {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (uart, report) = (
            folder.path().join("uart"),
            folder.path().join("report.json"),
        );
        let program = Program::start(&["sim", "--uart", text(&uart), "--report", text(&report)]);
        until("the pseudo-terminal", || uart.exists());
        Self {
            program,
            uart,
            report,
            _folder: folder,
        }
    }

    pub(crate) fn uri(&self) -> String {
        format!("uart://{}", self.uart.display())
    }

    /// Ends it; its report.
    pub(crate) fn report(self) -> Value {
        let Self {
            program,
            report,
            _folder,
            ..
        } = self;
        let ended = program.stop(Signal::INT);
        assert!(ended.status.success(), "{}", ended.err);
        serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap()
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
