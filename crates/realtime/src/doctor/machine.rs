//! Where the checks read from: the live machine, or a folder in which one was recorded. It changes nothing but the
//! folder of a new recording, and bounds every command in time.
//!
//! A recording holds the files under their own paths, `FILE.after` for what was read a second later, and the outputs
//! of commands as `commands/NAME ARGUMENTS` with slashes as underscores.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cpu_list::CpuList;

const PATIENCE: Duration = Duration::from_secs(5);
const SAMPLE_GAP: Duration = Duration::from_secs(1);
const COMMANDS: &str = "commands";
const AFTER: &str = ".after";

/// A machine to examine.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
    live: bool,
    seen: RefCell<BTreeMap<PathBuf, String>>,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn live() -> Self {
        Self::at(Path::new("/"), true)
    }

    /// A machine recorded in a folder.
    #[must_use]
    pub fn recorded(root: &Path) -> Self {
        Self::at(root, false)
    }

    fn at(root: &Path, live: bool) -> Self {
        Self {
            root: root.to_owned(),
            live,
            seen: RefCell::default(),
        }
    }

    /// Whether it is the live machine.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// The trimmed text of a file; `None` when it is missing, unreadable or no text.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path.trim_start_matches('/'))).ok()?;
        self.note(path, &text);
        Some(text.trim().to_owned())
    }

    /// A file that holds one whole number.
    #[must_use]
    pub fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    /// A file that holds a list of CPUs; empty when it is missing.
    #[must_use]
    pub fn cpus(&self, path: &str) -> CpuList {
        self.text(path)
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    }

    /// Names in a folder, sorted; empty when it is missing.
    #[must_use]
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path.trim_start_matches('/')));
        let entries = entries.into_iter().flatten().filter_map(Result::ok);
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Whether a path exists.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.root.join(path.trim_start_matches('/')).exists()
    }

    /// Output of a command that only reads; `None` when it is missing, fails, or takes more than five seconds.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Option<String> {
        let name = format!("{COMMANDS}/{}", words.join(" ").replace('/', "_"));
        if !self.live {
            return self.text(&name);
        }
        let (program, arguments) = words.split_first()?;
        let output = run_bounded(program, arguments)?;
        self.note(&name, &output);
        Some(output.trim().to_owned())
    }

    /// A file now and a second later. The first call on a live machine takes that second.
    #[must_use]
    pub fn twice(&self, path: &str) -> Option<(String, String)> {
        let before = self.text(path)?;
        if !self.live {
            return Some((before, self.text(&format!("{path}{AFTER}"))?));
        }
        thread::sleep(SAMPLE_GAP);
        let after = fs::read_to_string(path).ok()?;
        self.note(&format!("{path}{AFTER}"), &after);
        Some((before, after))
    }

    /// Process ids and names of the processes whose name fits; the names are noted in a recording.
    #[must_use]
    pub fn processes_where(&self, fits: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let pids = self
            .names("/proc")
            .into_iter()
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        let named = pids.filter_map(|pid| {
            self.peek(&format!("/proc/{pid}/comm"))
                .map(|comm| (pid, comm))
        });
        let found: Vec<_> = named.filter(|(_, comm)| fits(comm)).collect();
        for (pid, comm) in &found {
            self.note(&format!("/proc/{pid}/comm"), comm);
        }
        found
    }

    /// Whether a process of that name runs.
    #[must_use]
    pub fn runs(&self, name: &str) -> bool {
        !self.processes_where(|comm| comm == name).is_empty()
    }

    /// Like [`Machine::text`], and kept out of recordings.
    #[must_use]
    pub fn peek(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path.trim_start_matches('/'))).ok()?;
        Some(text.trim().to_owned())
    }

    /// The build configuration of the kernel, from `/boot` or from the kernel itself.
    #[must_use]
    pub fn kernel_config(&self) -> Option<String> {
        let release = self.text("/proc/sys/kernel/osrelease")?;
        self.text(&format!("/boot/config-{release}"))
            .or_else(|| self.command(&["zcat", "/proc/config.gz"]))
    }

    /// The value of a boot parameter; an empty text for one without a value.
    #[must_use]
    pub fn boot_parameter(&self, name: &str) -> Option<String> {
        let line = self.text("/proc/cmdline")?;
        line.split_whitespace().find_map(|word| {
            let rest = word.strip_prefix(name)?;
            if rest.is_empty() {
                Some(String::new())
            } else {
                rest.strip_prefix('=').map(str::to_owned)
            }
        })
    }

    fn note(&self, path: &str, text: &str) {
        if self.live {
            self.seen
                .borrow_mut()
                .insert(PathBuf::from(path.trim_start_matches('/')), text.to_owned());
        }
    }

    /// Writes everything that was read into a folder, so that [`Machine::recorded`] finds it there.
    ///
    /// # Errors
    /// When the folder or a file cannot be written.
    pub fn record(&self, folder: &Path) -> std::io::Result<usize> {
        let seen = self.seen.borrow();
        for (path, text) in &*seen {
            let target = folder.join(path);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(target, text)?;
        }
        Ok(seen.len())
    }
}

fn run_bounded(program: &str, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdout = child.stdout.take()?;
    let reader = thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let give_up = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().ok()? {
            Some(status) => break status,
            None if Instant::now() < give_up => thread::sleep(Duration::from_millis(5)),
            None => {
                child.kill().ok()?;
                child.wait().ok()?;
                return None;
            }
        }
    };
    let text = reader.join().ok()?.ok()?;
    status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_reads_back_what_the_live_machine_said() {
        let folder = tempfile::tempdir().unwrap();
        let live = Machine::live();
        let release = live.text("/proc/sys/kernel/osrelease").unwrap();
        let echoed = live.command(&["echo", "a/b"]).unwrap();
        assert!(live.record(folder.path()).unwrap() >= 2);
        let recorded = Machine::recorded(folder.path());
        assert_eq!(recorded.text("/proc/sys/kernel/osrelease"), Some(release));
        assert_eq!(recorded.command(&["echo", "a/b"]), Some(echoed));
        assert_eq!(
            recorded.command(&["uname"]),
            None,
            "a recording runs nothing"
        );
    }

    #[test]
    fn a_command_that_hangs_fails_or_is_missing_tells_nothing() {
        assert_eq!(run_bounded("sleep", &["60"]), None);
        assert_eq!(run_bounded("false", &[]), None);
        assert_eq!(run_bounded("no-such-program-here", &[]), None);
    }

    #[test]
    fn boot_parameters_are_whole_words() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("proc")).unwrap();
        fs::write(
            folder.path().join("proc/cmdline"),
            "quiet isolcpus=2,3 nohz\n",
        )
        .unwrap();
        let machine = Machine::recorded(folder.path());
        assert_eq!(machine.boot_parameter("isolcpus"), Some("2,3".to_owned()));
        assert_eq!(machine.boot_parameter("nohz"), Some(String::new()));
        assert_eq!(machine.boot_parameter("isol"), None);
    }
}
