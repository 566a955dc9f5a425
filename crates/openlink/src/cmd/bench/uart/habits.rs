//! The habits of slow serial drivers, each a switch of its own, and the contenders made of them.

use std::time::Duration;

use link::uri::Framing;

/// What a driver does that costs time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Habits {
    /// One byte in each read call.
    pub(super) single_bytes: bool,
    /// Sleeps and looks again instead of waiting for the port.
    pub(super) sleeps: bool,
    /// A thread that sends, one that receives, and queues between them and the caller.
    pub(super) hand_off: bool,
    /// An empty packet whenever there was nothing to send for 0.3 ms.
    pub(super) null_packets: bool,
    /// Every call costs the time of a slow interpreter, and one thread at a time has it.
    pub(super) interpreter: bool,
}

/// Pause of a driver that sleeps instead of waiting.
pub(super) const NAP: Duration = Duration::from_millis(1);
/// Idle time after which a driver with that habit sends an empty packet.
pub(super) const NULL_AFTER: Duration = Duration::from_micros(300);

impl Habits {
    const NONE: Self = Self {
        single_bytes: false,
        sleeps: false,
        hand_off: false,
        null_packets: false,
        interpreter: false,
    };
    const ALL: Self = Self {
        single_bytes: true,
        sleeps: true,
        hand_off: true,
        null_packets: true,
        interpreter: true,
    };
    /// What the Python library's driver of 2020 did, as far as its source tells: it waited for the port.
    const LIBRARY: Self = Self {
        sleeps: false,
        ..Self::ALL
    };
}

/// A driver under test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contender {
    /// Its name in tables and files.
    pub(super) name: &'static str,
    /// How it frames packets.
    pub(super) framing: Framing,
    /// What it does; `None` is the link that this project ships.
    pub(super) habits: Option<Habits>,
}

const fn slow(name: &'static str, habits: Habits) -> Contender {
    Contender {
        name,
        framing: Framing::Cpx,
        habits: Some(habits),
    }
}

/// All of them: ours, a driver without a habit, each habit alone, then together.
pub(super) const CONTENDERS: [Contender; 12] = [
    Contender {
        name: "openlink",
        framing: Framing::Cpx,
        habits: None,
    },
    slow("plain", Habits::NONE),
    slow(
        "single-bytes",
        Habits {
            single_bytes: true,
            ..Habits::NONE
        },
    ),
    slow(
        "sleeps",
        Habits {
            sleeps: true,
            ..Habits::NONE
        },
    ),
    slow(
        "hand-off",
        Habits {
            hand_off: true,
            ..Habits::NONE
        },
    ),
    slow(
        "null-packets",
        Habits {
            null_packets: true,
            ..Habits::NONE
        },
    ),
    slow(
        "interpreter",
        Habits {
            interpreter: true,
            ..Habits::NONE
        },
    ),
    slow(
        "all-but-interpreter",
        Habits {
            interpreter: false,
            ..Habits::ALL
        },
    ),
    slow(
        "all-but-nulls",
        Habits {
            null_packets: false,
            ..Habits::ALL
        },
    ),
    slow("all", Habits::ALL),
    Contender {
        name: "library-2020-syslink",
        framing: Framing::Syslink,
        habits: Some(Habits::LIBRARY),
    },
    Contender {
        name: "openlink-syslink",
        framing: Framing::Syslink,
        habits: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_each_habit_stands_alone_once() {
        let mut names: Vec<_> = CONTENDERS.iter().map(|one| one.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CONTENDERS.len());
        let alone = CONTENDERS.iter().filter_map(|one| one.habits);
        let on = |habits: Habits| {
            let Habits {
                single_bytes,
                sleeps,
                hand_off,
                null_packets,
                interpreter,
            } = habits;
            [single_bytes, sleeps, hand_off, null_packets, interpreter]
        };
        let mut singles = [0; 5];
        for habits in alone
            .map(on)
            .filter(|on| on.iter().filter(|one| **one).count() == 1)
        {
            for (count, habit) in singles.iter_mut().zip(habits) {
                *count += usize::from(habit);
            }
        }
        assert_eq!(singles, [1; 5]);
    }
}
