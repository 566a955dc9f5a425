//! Sends at fixed instants and records what arrives. A probe counts from the instant at which it was to leave, so that a
//! contender that is late for itself is late in the figures.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::clock::{cpu_ns, instant, now_ns};
use crate::flow::{Class, Flow, Received};

/// Head of a probe: kind, number, instant at which it was to leave, part and parts of a frame.
const HEAD: usize = 1 + 4 + 8 + 2 + 2;
const WARM: u8 = 0;
const CONTROL: u8 = 1;
const VIDEO: u8 = 2;
/// Probes that are not counted leave this long before the first that is.
const WARM_NS: u64 = 1_000_000_000;
/// Largest part of a frame where the contender does not cut it itself, bytes.
const PART: usize = 1100;
const FRAMES_A_SECOND: u64 = 30;
/// A key frame is this many times as large as another.
const KEY_FRAME: f64 = 5.0;

/// What this end does.
pub(crate) struct Plan {
    pub(crate) start_ns: u64,
    pub(crate) rate: f64,
    pub(crate) bytes: usize,
    pub(crate) count: u32,
    pub(crate) seconds: f64,
    pub(crate) linger_s: f64,
    pub(crate) video_bps: f64,
}

/// What came of it.
#[derive(Debug, Default, serde::Serialize)]
pub(crate) struct Results {
    /// Control messages of this end, and how many the contender refused.
    sent: u32,
    refused: u32,
    /// How late each left, us.
    send_late_us: Vec<u32>,
    /// Age of each message of the other end at its first arrival, us; -1 where it never came.
    age_us: Vec<i64>,
    /// Monotonic clock at each arrival, ms after the first counted probe was due; -1 as above.
    arrived_ms: Vec<i64>,
    duplicates: u32,
    /// Age of each frame once it was complete, us; -1 where it never was.
    frame_us: Vec<i64>,
    frames_sent: u32,
    /// Processor time of this process between the first and the last counted probe, us.
    cpu_us: u64,
}

/// Runs until the last probe has had its time.
pub(crate) fn run(flow: &mut dyn Flow, plan: &Plan) -> anyhow::Result<Results> {
    let mut end = End::new(plan);
    let over = plan.start_ns + ((plan.seconds + plan.linger_s) * 1e9) as u64;
    let last = plan.start_ns + (plan.seconds * 1e9) as u64;
    let mut cpu_at_start = None;
    while now_ns() < over {
        let now = now_ns();
        if now >= plan.start_ns && cpu_at_start.is_none() {
            cpu_at_start = Some(cpu_ns());
        }
        if now <= last {
            end.results.cpu_us = (cpu_ns() - cpu_at_start.unwrap_or_else(cpu_ns)) / 1000;
        }
        end.send_due(flow, plan)?;
        let wake = end.next_ns(plan).map_or(over, |at| at.min(over));
        if let Some(received) =
            flow.recv(instant(wake).min(Instant::now() + Duration::from_millis(100)))?
        {
            end.take(&received, plan);
        }
    }
    Ok(end.results)
}

struct End {
    period_ns: u64,
    first_ns: u64,
    /// Number of the next control message, warm ones included.
    next: u64,
    warm: u64,
    frame: u32,
    parts: HashMap<u32, u32>,
    data: Vec<u8>,
    results: Results,
}

impl End {
    fn new(plan: &Plan) -> Self {
        let period_ns = if plan.rate > 0.0 {
            (1e9 / plan.rate) as u64
        } else {
            u64::MAX
        };
        let warm = if plan.rate > 0.0 {
            WARM_NS / period_ns
        } else {
            0
        };
        let mut next = 0;
        let first_ns = plan.start_ns - warm * period_ns.min(WARM_NS);
        while plan.rate > 0.0 && next < warm && first_ns + next * period_ns < now_ns() {
            next += 1;
        }
        Self {
            period_ns,
            first_ns,
            next,
            warm,
            frame: 0,
            parts: HashMap::new(),
            data: vec![0; HEAD],
            results: Results::default(),
        }
    }

    fn control_ns(&self, plan: &Plan) -> Option<u64> {
        let left = plan.rate > 0.0 && self.next < self.warm + u64::from(plan.count);
        left.then(|| self.first_ns + self.next * self.period_ns)
    }

    fn frame_ns(&self, plan: &Plan) -> Option<u64> {
        let at = u64::from(self.frame) * 1_000_000_000 / FRAMES_A_SECOND;
        let left = plan.video_bps > 0.0 && (at as f64) < plan.seconds * 1e9;
        left.then_some(plan.start_ns + at)
    }

    fn next_ns(&self, plan: &Plan) -> Option<u64> {
        [self.control_ns(plan), self.frame_ns(plan)]
            .into_iter()
            .flatten()
            .min()
    }

    fn send_due(&mut self, flow: &mut dyn Flow, plan: &Plan) -> anyhow::Result<()> {
        while let Some(due) = self.control_ns(plan).filter(|at| *at <= now_ns()) {
            self.send_control(flow, plan, due)?;
        }
        if let Some(due) = self.frame_ns(plan).filter(|at| *at <= now_ns()) {
            self.send_frame(flow, plan, due)?;
        }
        Ok(())
    }

    fn send_control(&mut self, flow: &mut dyn Flow, plan: &Plan, due: u64) -> anyhow::Result<()> {
        let counted = self.next.checked_sub(self.warm);
        self.next += 1;
        let (kind, number) = counted.map_or((WARM, 0), |number| (CONTROL, number as u32));
        self.write(kind, number, due, (0, 1), plan.bytes);
        let taken = flow.send(Class::Control, &self.data)?;
        if counted.is_some() {
            self.results.sent += 1;
            self.results.refused += u32::from(!taken);
            self.results
                .send_late_us
                .push(((now_ns() - due) / 1000) as u32);
        }
        Ok(())
    }

    fn send_frame(&mut self, flow: &mut dyn Flow, plan: &Plan, due: u64) -> anyhow::Result<()> {
        let a_second = FRAMES_A_SECOND as f64 - 1.0 + KEY_FRAME;
        let one = plan.video_bps / 8.0 / a_second;
        let key = u64::from(self.frame).is_multiple_of(FRAMES_A_SECOND);
        let size = (if key { one * KEY_FRAME } else { one }) as usize;
        let parts = if flow.takes_frames() {
            1
        } else {
            size.div_ceil(PART).max(1)
        };
        for part in 0..parts {
            self.write(
                VIDEO,
                self.frame,
                due,
                (part as u16, parts as u16),
                size / parts,
            );
            flow.send(Class::Video, &self.data)?;
        }
        self.frame += 1;
        self.results.frames_sent += 1;
        Ok(())
    }

    fn write(&mut self, kind: u8, number: u32, due: u64, part: (u16, u16), bytes: usize) {
        self.data.clear();
        self.data.push(kind);
        self.data.extend_from_slice(&number.to_be_bytes());
        self.data.extend_from_slice(&due.to_be_bytes());
        self.data.extend_from_slice(&part.0.to_be_bytes());
        self.data.extend_from_slice(&part.1.to_be_bytes());
        self.data.resize(bytes.max(HEAD), 0x55);
    }

    fn take(&mut self, received: &Received, plan: &Plan) {
        let Some((head, _)) = received.data.split_first_chunk::<HEAD>() else {
            return;
        };
        let [kind, n0, n1, n2, n3, d @ .., _, _, p0, p1] = *head;
        let number = u32::from_be_bytes([n0, n1, n2, n3]);
        let age = (received.at_ns.saturating_sub(u64::from_be_bytes(d)) / 1000) as i64;
        match kind {
            CONTROL => {
                let at = (received.at_ns.saturating_sub(plan.start_ns) / 1_000_000) as i64;
                if put(&mut self.results.age_us, number, age) {
                    put(&mut self.results.arrived_ms, number, at);
                } else {
                    self.results.duplicates += 1;
                }
            }
            VIDEO => {
                let parts = self.parts.entry(number).or_default();
                *parts += 1;
                if *parts == u32::from(u16::from_be_bytes([p0, p1])) {
                    put(&mut self.results.frame_us, number, age);
                }
            }
            _ => {}
        }
    }
}

/// Sets what was not set before; `false` if it was.
fn put(values: &mut Vec<i64>, number: u32, value: i64) -> bool {
    let at = number as usize;
    if values.len() <= at {
        values.resize(at + 1, -1);
    }
    let first = values.get(at).is_some_and(|old| *old < 0);
    if let Some(slot) = values.get_mut(at).filter(|_| first) {
        *slot = value;
    }
    first
}
