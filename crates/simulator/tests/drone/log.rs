//! Log blocks: limits, error codes, timing.

use crate::bench::{Bench, bytes, text};

fn create(bench: &mut Bench, block: u8, kind: u8, variables: &[u16]) -> u8 {
    let entries: String = variables
        .iter()
        .map(|id| format!("{kind:02x}{}", text(&id.to_le_bytes())))
        .collect();
    let reply = bench
        .ask(&format!("5d06{block:02x}{entries}"))
        .pop()
        .unwrap();
    assert_eq!(reply[..6], format!("5d06{block:02x}"));
    bytes(&reply)[3]
}

#[test]
fn a_block_comes_on_time_with_its_stamp_and_values() {
    let mut bench = Bench::ready();
    let z = bench.id("5c", "acc", "z");
    assert_eq!(create(&mut bench, 1, 0x77, &[z]), 0);
    assert_eq!(bench.ask("5d03010a"), ["5d030100"]);
    bench.run(1000);
    let samples = bench.received();
    assert_eq!(samples.len(), 10);
    for (i, sample) in samples.iter().enumerate() {
        let sample = bytes(sample);
        assert_eq!((sample.len(), &sample[..2]), (9, &[0x52, 1][..]));
        let stamp = u32::from_le_bytes([sample[2], sample[3], sample[4], 0]);
        assert_eq!(stamp, 100 + 100 * (i as u32 + 1));
        assert!((f32::from_le_bytes(sample[5..].try_into().unwrap()) - 1.0).abs() < 1e-6);
    }
    assert_eq!(bench.ask("5d0401"), ["5d040100"]);
    bench.run(1000);
    assert!(bench.received().is_empty());
    assert_eq!(bench.ask("5d0201"), ["5d020100"]);
    assert_eq!(bench.ask("5d0201"), ["5d020102"]);
}

#[test]
fn seven_floats_in_one_block_are_too_big() {
    let mut bench = Bench::ready();
    assert_eq!(create(&mut bench, 1, 7, &[0, 1, 2, 3, 4, 5]), 0, "24 bytes");
    assert_eq!(
        create(&mut bench, 2, 7, &[0, 1, 2, 3, 4, 5, 6]),
        7,
        "28 bytes"
    );
    assert_eq!(bench.ask("5d0701050600"), ["5d070100"], "26 bytes");
    assert_eq!(bench.ask("5d0701010600"), ["5d070107"], "27 bytes");
}

#[test]
fn errors_have_the_firmwares_codes() {
    let mut bench = Bench::ready();
    assert_eq!(create(&mut bench, 1, 7, &[9999]), 2, "no such variable");
    assert_eq!(
        create(&mut bench, 1, 7, &[0]),
        17,
        "the block exists all the same"
    );
    assert_eq!(bench.ask("5d0763070000"), ["5d076302"], "no such block");
    assert_eq!(bench.ask("5d03630a"), ["5d036302"]);
    assert_eq!(
        bench.ask("5d0109"),
        ["5d010908"],
        "command of an old protocol"
    );
    for block in 2..=16 {
        assert_eq!(create(&mut bench, block, 1, &[0]), 0);
    }
    assert_eq!(create(&mut bench, 17, 1, &[0]), 12, "17 blocks");
    assert_eq!(bench.ask("5d05"), ["5d050000"]);
    assert_eq!(create(&mut bench, 17, 1, &[0]), 0);
    assert_eq!(bench.hazards(), 0);
}

#[test]
fn no_more_than_128_variables() {
    let mut bench = Bench::ready();
    for block in 0..14 {
        assert_eq!(create(&mut bench, block, 1, &[0; 9]), 0);
    }
    assert_eq!(create(&mut bench, 14, 1, &[0; 3]), 12);
}

#[test]
fn periods_in_milliseconds_and_single_shots() {
    let mut bench = Bench::ready();
    create(&mut bench, 1, 7, &[0]);
    assert_eq!(bench.ask("5d08010500"), ["5d080100"]);
    bench.run(100);
    assert_eq!(bench.received().len(), 20);
    assert_eq!(bench.ask("5d08010000"), ["5d080100"]);
    bench.run(100);
    assert_eq!(bench.received().len(), 1);
}

#[test]
fn a_drone_that_woke_late_skips_samples_and_counts_them() {
    let mut bench = Bench::ready();
    create(&mut bench, 1, 7, &[0]);
    bench.send("5d03010a");
    bench.received();
    bench.now += std::time::Duration::from_millis(1050);
    bench.drone.handle_timeout(bench.now);
    assert_eq!(bench.received().len(), 1);
    assert_eq!(bench.drone.report().traffic.log_missed, 9);
}

#[test]
fn blocks_that_find_no_client_are_deleted_and_the_queue_flushed() {
    let mut bench = Bench::ready();
    create(&mut bench, 1, 7, &[0]);
    bench.send("5d03010a");
    bench.received();
    bench.drone.set_connected(bench.now, false);
    bench.send("fc01");
    bench.run(500);
    assert!(bench.received().is_empty());
    assert_eq!(bench.drone.report().traffic.flushed, 1);
    bench.drone.set_connected(bench.now, true);
    bench.run(500);
    assert!(bench.received().is_empty());
    assert_eq!(create(&mut bench, 1, 7, &[0]), 0, "the block is gone");
    let link = bench.drone.report().link;
    assert_eq!(
        link.iter()
            .map(|change| change.connected)
            .collect::<Vec<_>>(),
        [false, true]
    );
}

#[test]
fn every_variable_can_be_logged_in_every_type() {
    let mut bench = Bench::ready();
    bench.command(takeoff());
    bench.run(1500);
    bench.received();
    let info = bytes(&bench.ask("5c03")[0]);
    for id in 0..u16::from_le_bytes([info[2], info[3]]) {
        for kind in 1..=8 {
            assert_eq!(create(&mut bench, 1, kind, &[id]), 0);
            bench.send("5d08010000");
            bench.received();
            bench.run(2);
            let sample = bytes(&bench.received()[0]);
            assert_eq!(
                sample.len(),
                5 + [0, 1, 2, 4, 1, 2, 4, 4, 2][usize::from(kind)],
                "id {id} kind {kind}"
            );
            bench.ask("5d0201");
        }
    }
}

fn takeoff() -> crtp::high_level::Command {
    crtp::high_level::Command::TakeoffOld(crtp::high_level::Vertical {
        group_mask: 0,
        height: 0.5,
        duration: 1.0,
    })
}
