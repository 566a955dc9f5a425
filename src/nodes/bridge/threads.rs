//! How the links' thread runs: policy, affinity, timer slack and locked memory, asked for by parameters and read back.

use anyhow::{Result, bail};
use realtime::thread::process::{DEFAULT_PREFAULT, lock_memory};
use realtime::{Applied, Effective, Refusal, ThreadPolicy};

use crate::ros::args::{ArgsError, NodeArgs};

/// What the parameters below `threads` ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    thread: ThreadPolicy,
    lock_memory: bool,
    /// A refusal ends the bridge.
    strict: bool,
}

impl Settings {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// [`ArgsError`] naming parameter, value and what is allowed.
    pub(super) fn read(args: &NodeArgs) -> Result<Self, ArgsError> {
        let slack_us = args.int("threads.timer_slack_us", 0, 0..=1_000_000)?;
        let slack_ns = u64::try_from(slack_us).unwrap_or_default() * 1000;
        Ok(Self {
            thread: ThreadPolicy {
                policy: parsed(
                    args,
                    "threads.policy",
                    "other, other:SLICE, fifo:1 to fifo:99, rr:1 to rr:99, deadline:…",
                )?,
                cpus: parsed(args, "threads.affinity", "a list of CPUs as in \"2,3\"")?,
                timer_slack_ns: (slack_ns > 0).then_some(slack_ns),
                busy_poll_us: None,
            },
            lock_memory: args.bool("threads.lock_memory", false)?,
            strict: args.bool("threads.strict", false)?,
        })
    }

    fn is_empty(&self) -> bool {
        self.thread == ThreadPolicy::default() && !self.lock_memory
    }

    /// Applies everything to the calling thread, and says what the kernel granted; each refusal is one warning with its
    /// cause and remedy.
    ///
    /// # Errors
    /// A refusal, with `threads.strict`; or the kernel does not tell what took effect.
    pub(super) fn apply(&self) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let memory = self.lock_memory.then(|| lock_memory(DEFAULT_PREFAULT));
        let locked = memory.as_ref().is_some_and(|memory| memory.locked);
        let Applied {
            effective,
            refusals,
        } = self.thread.apply()?;
        tracing::info!("the links' thread runs as {}", in_words(&effective, locked));
        let refused = memory.and_then(|memory| memory.refusal).into_iter();
        self.judge(refused.chain(refusals))
    }

    fn judge(&self, refusals: impl Iterator<Item = Refusal>) -> Result<()> {
        for refusal in refusals {
            if self.strict {
                bail!("threads: {refusal}");
            }
            tracing::warn!("threads: {refusal}");
        }
        Ok(())
    }
}

fn in_words(effective: &Effective, locked: bool) -> String {
    let policy = effective.policy.map_or_else(
        || "an unknown policy".to_owned(),
        |policy| policy.to_string(),
    );
    let memory = if locked {
        "memory locked"
    } else {
        "memory not locked"
    };
    format!(
        "{policy} on CPUs {}, timer slack {} ns, {memory}",
        effective.cpus, effective.timer_slack_ns
    )
}

/// Nothing for an empty text.
fn parsed<T: std::str::FromStr>(
    args: &NodeArgs,
    key: &str,
    allowed: &str,
) -> Result<Option<T>, ArgsError> {
    // A single CPU looks like a number to YAML.
    let number = args.raw(key).and_then(serde_json::Value::as_u64);
    let text = match number {
        Some(number) => {
            args.took_effect(key, number.to_string());
            number.to_string()
        }
        None => args.text(key, "")?,
    };
    if text.is_empty() {
        return Ok(None);
    }
    let value = text.parse();
    value
        .map(Some)
        .map_err(|_| ArgsError::value(key, text, allowed))
}
