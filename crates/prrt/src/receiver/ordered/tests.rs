use super::*;
use crate::payload::Payload;

const MS: Duration = Duration::from_millis(1);

struct Stage {
    rx: OrderedRx,
    books: Books,
    start: Instant,
    first: Seq,
}

impl Stage {
    fn new() -> Self {
        let first = Seq::new(u32::MAX - 1);
        Self {
            rx: OrderedRx::new(Stream::Ordered(0), first, 8),
            books: Books::default(),
            start: Instant::now(),
            first,
        }
    }

    fn at(&self, ms: u32) -> Instant {
        self.start + MS * ms
    }

    /// Message number `n` arrives; it lives until `expires`, and what is before it may come until `wait`.
    fn arrive(&mut self, n: u32, expires: u32, wait: u32) -> Verdict {
        let seq = self.first.plus(n);
        let verdict = self.rx.wants(seq);
        if verdict == Verdict::Wanted {
            let held = Held {
                data: Payload::copy_of(&[n as u8]),
                at: self.start,
                born: self.start,
                doubt: None,
                expires: Some(self.at(expires)),
                wait_until: Some(self.at(wait)),
                attempt: 0,
            };
            self.books.hold(&held);
            self.rx.put(seq, held);
        }
        verdict
    }

    fn ordered(&mut self, ms: u32) -> Option<(u8, u32)> {
        let now = self.at(ms);
        self.rx
            .pop_ordered(now, Duration::ZERO, &mut self.books)
            .map(|m| (m.data[0], m.gap_before))
    }
}

#[test]
fn a_missing_message_blocks_until_it_can_only_come_too_late() {
    let mut stage = Stage::new();
    stage.arrive(0, 20, 0);
    stage.arrive(2, 40, 30);
    assert_eq!(stage.ordered(10), Some((0, 0)));
    assert_eq!(stage.ordered(29), None);
    assert_eq!(stage.rx.deadline(), Some(stage.at(30)));
    assert_eq!(stage.ordered(30), Some((2, 1)));
    assert_eq!(stage.arrive(1, 50, 0), Verdict::Duplicate);
    assert_eq!(stage.books.stats.missed, 1);
}

#[test]
fn the_window_gives_up_earlier() {
    let mut stage = Stage::new();
    stage.arrive(1, 40, 30);
    let now = stage.at(25);
    assert!(
        stage
            .rx
            .pop_ordered(now, 4 * MS, &mut stage.books)
            .is_none()
    );
    assert!(
        stage
            .rx
            .pop_ordered(now, 5 * MS, &mut stage.books)
            .is_some()
    );
}

#[test]
fn order_is_kept_across_the_wrap_and_repeats_are_known() {
    let mut stage = Stage::new();
    for n in [3, 1, 0, 2] {
        assert_eq!(stage.arrive(n, 90, 80), Verdict::Wanted);
        assert_eq!(stage.arrive(n, 90, 80), Verdict::Duplicate);
    }
    for n in 0..4 {
        assert_eq!(stage.ordered(1), Some((n, 0)));
    }
    assert_eq!(stage.ordered(1), None);
}

#[test]
fn nothing_is_delivered_after_its_expiry() {
    let mut stage = Stage::new();
    stage.arrive(0, 20, 0);
    stage.arrive(1, 40, 0);
    assert_eq!(stage.ordered(20), Some((1, 1)));
    assert_eq!(stage.books.stats.expired, 1);
}

#[test]
fn five_thousand_lost_in_a_row_do_not_stop_delivery() {
    let mut stage = Stage::new();
    stage.arrive(0, 90, 0);
    assert_eq!(stage.ordered(1), Some((0, 0)));
    assert_eq!(stage.arrive(5001, 90, 80), Verdict::NoRoom);
    let floor = stage.first.plus(5001);
    stage.rx.raise_floor(floor, &mut stage.books);
    assert_eq!(stage.arrive(5001, 90, 80), Verdict::Wanted);
    assert_eq!(stage.ordered(2), Some((5001u32 as u8, 5000)));
}

#[test]
fn asap_takes_what_is_there_and_latest_only_the_newest() {
    let mut stage = Stage::new();
    let now = stage.at(1);
    stage.arrive(2, 90, 80);
    stage.arrive(1, 90, 80);
    let asap = |stage: &mut Stage| stage.rx.pop_asap(now, &mut stage.books).map(|m| m.data[0]);
    assert_eq!(asap(&mut stage), Some(1));
    assert_eq!(asap(&mut stage), Some(2));
    stage.arrive(0, 90, 0);
    assert_eq!(asap(&mut stage), Some(0));
    assert_eq!(stage.arrive(1, 90, 80), Verdict::Duplicate);
    stage.arrive(4, 90, 80);
    stage.arrive(5, 90, 80);
    let newest = stage.rx.pop_latest(now, &mut stage.books).unwrap();
    assert_eq!((newest.data[0], newest.gap_before), (5, 2));
    assert_eq!(stage.arrive(3, 90, 80), Verdict::Duplicate);
    assert_eq!(stage.books.stats.stale, 1);
}

#[test]
fn useless_messages_make_room_without_a_reader() {
    let mut stage = Stage::new();
    for n in 0..100 {
        let seq = stage.first.plus(n);
        stage.rx.raise_floor(seq, &mut stage.books);
        assert_eq!(stage.rx.wants(seq), Verdict::Wanted);
        stage.rx.skip(seq);
    }
}

#[test]
fn a_reader_that_does_not_read_holds_the_sender_back() {
    let mut stage = Stage::new();
    for n in 0..8 {
        assert_eq!(stage.arrive(n, 90, 0), Verdict::Wanted);
    }
    assert_eq!(stage.arrive(8, 90, 0), Verdict::NoRoom);
    assert_eq!(stage.ordered(1), Some((0, 0)));
    assert_eq!(stage.arrive(8, 90, 0), Verdict::Wanted);
}
