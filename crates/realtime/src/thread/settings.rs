//! The configuration of one thread and what became of it: applied, read back from the kernel, refusals listed.
//!
//! Applies to the calling thread only. A refusal is part of the answer; [`Applied::require`] turns it into an error.

use std::num::NonZeroU64;

use rustix::io::Errno;
use rustix::thread::{
    CpuSet, current_timer_slack, sched_getaffinity, sched_getcpu, sched_setaffinity,
    set_current_timer_slack,
};
use serde::{Deserialize, Serialize};

use super::facts::Permissions;
use super::policy::Policy;
use super::refusal::{Refusal, Request};
use crate::cpu_list::{CpuList, MAX_CPU};
use crate::sys;

/// How one thread shall run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThreadPolicy {
    /// Scheduling policy, e.g. `fifo:80`; none = leave as it is.
    pub policy: Option<Policy>,
    /// CPUs the thread is confined to, e.g. `"2,3"`; none = leave as it is.
    pub cpus: Option<CpuList>,
    /// Timer slack in nanoseconds (the kernel's default is 50 000); none = leave as it is. Real-time classes have none.
    pub timer_slack_ns: Option<u64>,
    /// Microseconds to poll the network device before sleeping on a socket; for the thread that owns the socket.
    pub busy_poll_us: Option<u32>,
}

/// What the kernel says the thread runs under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effective {
    /// Policy; none for a class that no setting of ours asks for.
    pub policy: Option<Policy>,
    /// Nice value of the time-sharing class, −20 to 19.
    pub nice: i32,
    /// Time slice of the time-sharing class, nanoseconds; 0 where the kernel does not tell.
    pub slice_ns: u64,
    /// CPUs the thread may use.
    pub cpus: CpuList,
    /// The CPU it was on when asked.
    pub cpu: usize,
    /// Timer slack, nanoseconds; 0 in the real-time classes.
    pub timer_slack_ns: u64,
}

/// The outcome of applying a [`ThreadPolicy`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Read back after applying.
    pub effective: Effective,
    /// Everything the kernel refused, in the order it was tried.
    pub refusals: Vec<Refusal>,
}

impl Applied {
    /// The first refusal as an error, for callers that accept no compromise.
    ///
    /// # Errors
    /// When anything was refused.
    pub fn require(self) -> Result<Self, Refusal> {
        match self.refusals.first() {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(self),
        }
    }
}

impl ThreadPolicy {
    /// Applies every setting to the calling thread and reads back what took effect. Affinity comes before policy:
    /// a thread must already sit on its core when it becomes able to starve others.
    ///
    /// # Errors
    /// When the kernel cannot be asked what took effect.
    pub fn apply(&self) -> std::io::Result<Applied> {
        let mut refusals = Vec::new();
        if let Some(cpus) = &self.cpus {
            refusals.extend(self.try_pin(cpus));
        }
        if let Some(slack) = self.timer_slack_ns {
            let outcome = set_current_timer_slack(NonZeroU64::new(slack));
            refusals.extend(refused(&Request::TimerSlack(slack), outcome));
        }
        if let Some(policy) = self.policy {
            refusals.extend(try_schedule(policy));
        }
        Ok(Applied {
            effective: Effective::read()?,
            refusals,
        })
    }

    fn try_pin(&self, cpus: &CpuList) -> Option<Refusal> {
        let mut set = CpuSet::new();
        cpus.iter()
            .filter(|cpu| *cpu < CpuSet::MAX_CPU)
            .for_each(|cpu| set.set(cpu));
        let current = Effective::read()
            .ok()
            .and_then(|effective| effective.policy);
        let request = Request::Pin(cpus.clone(), current.unwrap_or_default());
        refused(&request, sched_setaffinity(None, &set))
    }

    /// Sets busy polling on a socket, when asked for.
    #[must_use]
    pub fn apply_to_socket(&self, socket: &impl std::os::fd::AsFd) -> Option<Refusal> {
        let us = self.busy_poll_us?;
        let outcome = socket2::SockRef::from(socket).set_busy_poll(us);
        refused(
            &Request::BusyPoll(us),
            outcome.map_err(|error| errno_of(&error)),
        )
    }
}

fn try_schedule(policy: Policy) -> Option<Refusal> {
    let outcome = sys::sched_setattr(&policy.attributes()).map_err(|error| errno_of(&error));
    refused(&Request::Schedule(policy), outcome)
}

pub(crate) fn refused(request: &Request, outcome: Result<(), Errno>) -> Option<Refusal> {
    outcome
        .err()
        .map(|errno| Refusal::diagnose(request, errno, &Permissions::read()))
}

/// The number behind an I/O error; `EIO` for one without a number.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

impl Effective {
    /// Asks the kernel about the calling thread.
    ///
    /// # Errors
    /// When one of the questions fails.
    pub fn read() -> std::io::Result<Self> {
        let attr = sys::sched_getattr()?;
        let set = sched_getaffinity(None)?;
        let policy = Policy::from_attributes(&attr);
        Ok(Self {
            slice_ns: if attr.policy == sys::SCHED_OTHER {
                attr.runtime_ns
            } else {
                0
            },
            nice: attr.nice,
            cpus: (0..=MAX_CPU.min(CpuSet::MAX_CPU - 1))
                .filter(|cpu| set.is_set(*cpu))
                .collect(),
            cpu: sched_getcpu(),
            timer_slack_ns: if policy.is_some_and(|p| p.is_real_time()) {
                0
            } else {
                current_timer_slack()?
            },
            policy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_thread_runs_where_and_with_the_slack_it_was_told() {
        let applied = thread::spawn(|| {
            let wish = ThreadPolicy {
                cpus: Some(Effective::read().unwrap().cpus.iter().take(1).collect()),
                timer_slack_ns: Some(1),
                ..ThreadPolicy::default()
            };
            (wish.cpus.clone().unwrap(), wish.apply().unwrap())
        });
        let (cpus, applied) = applied.join().unwrap();
        assert_eq!(applied.refusals, []);
        assert_eq!(
            (applied.effective.cpus, applied.effective.timer_slack_ns),
            (cpus, 1)
        );
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_a_refusal_not_a_crash() {
        let wish = ThreadPolicy {
            cpus: Some("1000".parse().unwrap()),
            ..ThreadPolicy::default()
        };
        let applied = thread::spawn(move || wish.apply().unwrap()).join().unwrap();
        assert_eq!(
            applied.refusals[0].cause,
            super::super::refusal::Cause::NoSuchCpu
        );
        assert!(applied.require().is_err());
    }

    #[test]
    fn unknown_keys_are_refused() {
        let error = serde_json::from_str::<ThreadPolicy>(r#"{"prio": 3}"#).unwrap_err();
        assert!(error.to_string().contains("prio"), "{error}");
        let read: ThreadPolicy =
            serde_json::from_str(r#"{"policy": "fifo:40", "cpus": "2"}"#).unwrap();
        assert_eq!(read.policy, Some(Policy::Fifo(40)));
    }
}
