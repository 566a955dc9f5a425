//! The ROS programs a cell consists of: where they are, and running them so that none outlives the runner.
//!
//! Every child is in a process group of its own, so that Ctrl-C reaches the runner alone, which then ends the
//! children in order.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

const PACKAGE: &str = "crazyflie_openlink";
/// How long a child may take to end after a signal.
const PATIENCE: Duration = Duration::from_secs(8);
/// How often a child is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// The folder with the nodes: beside this program, below an install prefix, or in a prefix of the ROS environment.
pub(super) fn folder() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("where is this program?")?;
    let own = own.canonicalize().unwrap_or(own);
    let beside = own.parent().map(Path::to_owned);
    let prefix = own
        .ancestors()
        .nth(2)
        .map(|prefix| prefix.join("lib").join(PACKAGE));
    let path = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
    let ament = std::env::split_paths(&path).map(|prefix| prefix.join("lib").join(PACKAGE));
    let found = beside
        .into_iter()
        .chain(prefix)
        .chain(ament)
        .find(|folder| {
            ["rtt", "relay", "domain_bridge"]
                .iter()
                .all(|name| folder.join(name).is_file())
        });
    found.context(
        "the nodes rtt, relay and domain_bridge were not found beside this program or below AMENT_PREFIX_PATH: \
         build the ROS package (make build) and source it",
    )
}

/// Whether a library lies in a folder that the loader or the ROS environment names.
pub(super) fn has_library(name: &str) -> bool {
    library(name).is_some()
}

/// A library's file.
pub(super) fn library(name: &str) -> Option<PathBuf> {
    let list = |variable: &str| -> Vec<PathBuf> {
        let value = std::env::var_os(variable).unwrap_or_default();
        std::env::split_paths(&value).collect()
    };
    let ament = list("AMENT_PREFIX_PATH")
        .into_iter()
        .map(|prefix| prefix.join("lib"));
    let mut folders = list("LD_LIBRARY_PATH").into_iter().chain(ament);
    folders.find_map(|folder| {
        let path = folder.join(format!("lib{name}.so"));
        path.is_file().then_some(path)
    })
}

/// A running child with its log.
pub(super) struct Program {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts a program whose output goes to `NAME.log` in `folder`.
    pub(super) fn start(
        path: &Path,
        arguments: &[String],
        environment: &[(String, String)],
        folder: &Path,
        name: &str,
    ) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| log.display().to_string())?;
        let mut command = Command::new(path);
        for variable in super::transport::VARIABLES {
            if !environment
                .iter()
                .any(|(key, _)| key == "OPENLINK_KEEP_TRANSPORT")
            {
                command.env_remove(variable);
            }
        }
        let child = command
            .args(arguments)
            .envs(environment.iter().map(|(key, value)| (key, value)))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .process_group(0)
            .spawn()
            .with_context(|| path.display().to_string())?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, once it has ended.
    pub(super) fn poll(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits until the log has `text`; the program must not end before that.
    pub(super) fn wait_for(&mut self, text: &str, limit: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + limit;
        while !self.log_text().contains(text) {
            if self.poll()?.is_some() {
                bail!("{} ended: {}", self.name, self.last_words());
            }
            if Instant::now() >= end {
                bail!(
                    "{} did not start within {limit:?}: {}",
                    self.name,
                    self.last_words()
                );
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }

    /// Asks it to end, waits, and kills it if it does not.
    pub(super) fn stop(&mut self) -> anyhow::Result<ExitStatus> {
        self.signal(Signal::INT);
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.poll()? {
                return Ok(status);
            }
            if Instant::now() >= end {
                self.child.kill()?;
                return Ok(self.child.wait()?);
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// Asks it to end.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself just now.
            kill_process(pid, signal).ok();
        }
    }

    /// What its log says last: the last error from its first line on, else the last line that says something.
    pub(super) fn last_words(&self) -> String {
        last_words(&self.log_text())
    }

    fn log_text(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// An error of several lines begins with its level and its cause; the lines below it are no reason by themselves.
fn last_words(log: &str) -> String {
    let said = |line: &&str| !line.trim().is_empty();
    let error = log.lines().rev().find(|line| line.contains(" ERROR "));
    let line = error.or_else(|| log.lines().rev().find(said));
    line.map_or("it said nothing", str::trim).to_owned()
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // Nobody asked it to end, so something went wrong; it must not outlive us.
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn the_first_line_of_an_error_is_told_not_where_it_was_found() {
        let log = "12:00 INFO begins\n12:01 ERROR type support not from this implementation. Got:\n    no such file\nwhile fetching it\n\n";
        let words = "12:01 ERROR type support not from this implementation. Got:";
        assert_eq!(last_words(log), words);
        assert_eq!(last_words("12:00 INFO begins\n\n"), "12:00 INFO begins");
        assert_eq!(last_words(" \n"), "it said nothing");
    }
}
