//! Samples on their way to the owner, in buffers that are used again: no allocation once the buffers are as
//! large as the logs. Also the drone's clock, made 64 bits wide.

use std::collections::VecDeque;

use crtp::Value;

use super::LogHandle;

/// Values of a log at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogSample<'a> {
    /// The log.
    pub handle: LogHandle,
    /// The drone's clock in ms since the connection's first sample, plus that sample's clock; does not wrap.
    pub drone_ms: u64,
    /// In the order of the log's variables; `None` for variables the drone does not have.
    pub values: &'a [Option<Value>],
}

struct Slot {
    handle: LogHandle,
    drone_ms: u64,
    values: Vec<Option<Value>>,
}

/// Bounded queue of samples; the oldest is dropped and counted.
#[derive(Default)]
pub(crate) struct Samples {
    queue: VecDeque<Slot>,
    spare: Vec<Slot>,
    current: Option<Slot>,
    pub(crate) dropped: u64,
}

impl Samples {
    const MAX: usize = 256;

    pub(crate) fn push(&mut self, handle: LogHandle, drone_ms: u64, values: &[Option<Value>]) {
        if self.queue.len() == Self::MAX {
            self.spare.extend(self.queue.pop_front());
            self.dropped += 1;
        }
        let mut slot = self.spare.pop().unwrap_or_else(|| Slot {
            handle,
            drone_ms,
            values: Vec::new(),
        });
        slot.handle = handle;
        slot.drone_ms = drone_ms;
        slot.values.clear();
        slot.values.extend_from_slice(values);
        self.queue.push_back(slot);
    }

    pub(crate) fn pop(&mut self) -> Option<LogSample<'_>> {
        self.spare.extend(self.current.take());
        self.current = self.queue.pop_front();
        let slot = self.current.as_ref()?;
        Some(LogSample {
            handle: slot.handle,
            drone_ms: slot.drone_ms,
            values: &slot.values,
        })
    }
}

/// Makes the drone's 24-bit clock wide. Packets of several blocks may come a little out of order.
#[derive(Default)]
pub(super) struct DroneClock {
    last: Option<u64>,
}

impl DroneClock {
    pub(super) fn wide(&mut self, ms: u32) -> u64 {
        let Some(last) = self.last else {
            self.last = Some(ms.into());
            return ms.into();
        };
        // Sign-extends the 24-bit difference.
        let difference = i64::from((ms.wrapping_sub(last as u32) << 8) as i32 >> 8);
        let wide = last.saturating_add_signed(difference);
        self.last = Some(last.max(wide));
        wide
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drones_clock_wraps_after_four_hours_and_goes_on() {
        let mut clock = DroneClock::default();
        assert_eq!(clock.wide(0xff_fff0), 0xff_fff0);
        assert_eq!(clock.wide(0x00_0004), 0x100_0004);
        assert_eq!(
            clock.wide(0xff_fffe),
            0xff_fffe,
            "late packet of before the wrap"
        );
        assert_eq!(clock.wide(0x00_0010), 0x100_0010);
    }

    #[test]
    fn samples_nobody_takes_are_dropped_oldest_first() {
        let mut samples = Samples::default();
        for i in 0..300 {
            samples.push(LogHandle(1), i, &[Some(Value::U8(1))]);
        }
        assert_eq!(samples.dropped, 44);
        assert_eq!(samples.pop().unwrap().drone_ms, 44);
    }
}
