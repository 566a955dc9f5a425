//! Logs: splitting, joining, missing variables, drones that forget.

use crtp::{Kind, Status, Value};
use crtp_client::{Config, Event, LogConfig, LogError, LogVariable};

use crate::ms;
use crate::pair::Pair;

fn floats(count: usize) -> LogConfig {
    LogConfig::new("floats", ms(10), (0..count).map(|i| format!("f.{i}")))
}

fn is_started(event: &Event) -> bool {
    matches!(event, Event::LogStarted { .. })
}

#[test]
fn seven_floats_arrive_as_one_sample() {
    let mut pair = Pair::connected(Config::default());
    let handle = pair.client.add_log(pair.now, floats(7)).unwrap();
    let Event::LogStarted { blocks, .. } = pair.until(is_started) else {
        panic!("not started");
    };
    assert_eq!(blocks, 2);
    pair.run(ms(1000));
    assert!(
        (95..=101).contains(&pair.samples.len()),
        "{}",
        pair.samples.len()
    );
    let expected: Vec<_> = (0..7).map(|i| Some(Value::F32(i as f32))).collect();
    for sample in &pair.samples {
        assert_eq!((sample.handle, &sample.values), (handle, &expected));
    }
    let stamps: Vec<u64> = pair.samples.iter().map(|s| s.drone_ms).collect();
    assert!(stamps.is_sorted());
}

#[test]
fn seven_floats_are_refused_naming_block_bytes_and_limit_where_splitting_is_off() {
    let config = Config {
        split_blocks: false,
        ..Config::default()
    };
    let mut pair = Pair::connected(config);
    let error = pair.client.add_log(pair.now, floats(7)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "log floats: its variables have 28 bytes, a block holds at most 26"
    );
    pair.client.add_log(pair.now, floats(6)).unwrap();
    pair.until(is_started);
}

#[test]
fn a_missing_log_variable_is_named_and_all_else_works() {
    let mut pair = Pair::new(Config::default());
    let names = ["f.1", "no.such", "b.2"];
    let partly = LogConfig::new("partly", ms(20), names);
    let partly = pair.client.add_log(pair.now, partly).unwrap();
    let none = LogConfig::new("none", ms(20), ["not.there", "nor.this"]);
    let none = pair.client.add_log(pair.now, none).unwrap();
    let good = pair.client.add_log(pair.now, floats(3)).unwrap();
    pair.client.connect(pair.now);
    let failed = pair.until(|event| matches!(event, Event::LogFailed { .. }));
    let Event::LogFailed { handle, error } = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(handle, none);
    assert_eq!(
        error.to_string(),
        "log none: none of its variables is known to the drone: not.there, nor.this"
    );
    let started = pair.until(is_started);
    assert!(
        matches!(&started, Event::LogStarted { handle, missing, .. } if *handle == partly && missing == &["no.such"])
    );
    pair.run(ms(200));
    let of = |handle| pair.samples.iter().filter(move |s| s.handle == handle);
    assert!(of(good).count() > 10);
    let values = &of(partly).next().unwrap().values;
    assert_eq!(
        values[..],
        [Some(Value::F32(1.0)), None, Some(Value::U8(62))]
    );
}

#[test]
fn eight_blocks_start_on_a_drone_that_holds_one_packet_a_port() {
    let mut pair = Pair::new(Config::default());
    pair.service = ms(5);
    for i in 0..8 {
        let name = format!("log {i}");
        let log = LogConfig::new(name, ms(100), [format!("f.{i}")]);
        pair.client.add_log(pair.now, log).unwrap();
    }
    pair.client.connect(pair.now);
    for _ in 0..8 {
        pair.until(is_started);
    }
    assert_eq!(pair.overflows, 0);
    assert_eq!(pair.drone.blocks.len(), 8);
}

#[test]
fn more_than_nine_variables_are_appended() {
    let mut pair = Pair::connected(Config::default());
    let log = LogConfig::new("bytes", ms(10), (0..26).map(|i| format!("b.{i}")));
    pair.client.add_log(pair.now, log).unwrap();
    pair.until(is_started);
    let commands: Vec<u8> = pair.taken(0x51).iter().map(|p| p.data()[0]).collect();
    assert_eq!(commands, [6, 7, 7, 8]);
    pair.run(ms(50));
    let expected: Vec<_> = (60..86).map(|i| Some(Value::U8(i))).collect();
    assert_eq!(pair.samples[0].values, expected);
}

#[test]
fn lost_set_up_requests_never_double_a_variable() {
    for seed in 0..30 {
        let mut pair = Pair::connected(Config {
            request_timeout: ms(20),
            attempts: 20,
            ping_period: None,
            ..Config::default()
        });
        pair.seed(seed);
        pair.loss = 0.25;
        let log = LogConfig::new("bytes", ms(10), (0..20).map(|i| format!("b.{i}")));
        pair.client.add_log(pair.now, log).unwrap();
        let outcome = pair.until(|e| is_started(e) || matches!(e, Event::LogFailed { .. }));
        pair.loss = 0.0;
        pair.run(ms(200));
        if is_started(&outcome) {
            assert!(!pair.samples.is_empty(), "seed {seed}");
            assert_eq!(pair.samples[0].values.len(), 20);
            assert_eq!(pair.drone.blocks.len(), 1);
        } else {
            assert!(pair.drone.blocks.is_empty(), "a failed log leaves no block");
        }
        assert_eq!(pair.client.stats().malformed, 0);
    }
}

#[test]
fn data_of_old_blocks_is_ignored() {
    let mut pair = Pair::new(Config::default());
    let old = crtp::log::Data {
        block: 1,
        time_ms: 5,
        values: [1, 2, 3, 4].into_iter().collect(),
    };
    pair.client.connect(pair.now);
    for _ in 0..50 {
        pair.send_down(&old.encode(), ms(0));
        pair.run(ms(10));
    }
    assert!(pair.client.is_connected());
    assert_eq!(pair.client.stats().unknown_blocks, 50);
    assert!(pair.samples.is_empty());
}

#[test]
fn a_drone_that_forgets_its_blocks_gets_them_again() {
    let mut pair = Pair::connected(Config::default());
    pair.client.add_log(pair.now, floats(2)).unwrap();
    pair.run(ms(200));
    pair.drone.blocks.clear();
    pair.samples.clear();
    pair.run(ms(4000));
    assert!(pair.samples.len() > 100, "{}", pair.samples.len());
    let noticed = |e: &Event| matches!(e, Event::Notice(text) if text.contains("log floats"));
    assert!(pair.events.iter().any(noticed));
}

#[test]
fn a_taken_block_number_is_left_alone() {
    let mut pair = Pair::connected(Config::default());
    let create = crtp::log::Control::Create {
        block: 0x80,
        variables: Default::default(),
    };
    pair.drone.handle(pair.now, &create.encode());
    pair.client.add_log(pair.now, floats(1)).unwrap();
    pair.until(is_started);
    let ids: Vec<u8> = pair.drone.blocks.keys().copied().collect();
    assert_eq!(ids, [0x80, 0x81]);
    assert_eq!(pair.drone.kinds(0x81), [Kind::F32]);
}

#[test]
fn old_firmware_gets_periods_in_tens() {
    let mut pair = Pair::connected(Config::default());
    pair.drone.old_start = true;
    pair.client
        .add_log(pair.now, LogConfig::new("slow", ms(25), ["f.1"]))
        .unwrap();
    pair.until(is_started);
    let last = pair.taken(0x51).last().copied().unwrap();
    assert_eq!(last.data(), [3, 0x80, 3]);
}

#[test]
fn a_removed_log_stops_and_its_room_is_free() {
    let mut pair = Pair::connected(Config::default());
    let mut handles = Vec::new();
    for i in 0..16 {
        let log = LogConfig::new(format!("{i}"), ms(100), [format!("f.{i}")]);
        handles.push(pair.client.add_log(pair.now, log).unwrap());
    }
    let error = pair.client.add_log(pair.now, floats(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "log floats: needs 1 blocks, 0 of 16 are free"
    );
    pair.client.remove_log(pair.now, handles[3]);
    pair.client.add_log(pair.now, floats(1)).unwrap();
    pair.run(ms(500));
    assert_eq!(pair.drone.blocks.len(), 16);
    pair.samples.clear();
    pair.run(ms(500));
    assert!(
        pair.samples
            .iter()
            .all(|sample| sample.handle != handles[3])
    );
}

#[test]
fn too_many_variables_and_odd_periods_are_refused() {
    let mut pair = Pair::connected(Config::default());
    let names = || (0..60).map(|i| format!("b.{i}"));
    for i in 0..2 {
        let log = LogConfig::new(format!("{i}"), ms(100), names());
        pair.client.add_log(pair.now, log).unwrap();
    }
    let third = LogConfig::new("third", ms(100), names().take(9));
    let error = pair.client.add_log(pair.now, third).unwrap_err();
    assert_eq!(
        error.to_string(),
        "log third: has 9 variables, 8 of 128 are free"
    );
    for period in [ms(0), ms(65_536), std::time::Duration::from_micros(2500)] {
        let log = LogConfig::new("odd", period, ["f.0"]);
        assert!(matches!(
            pair.client.add_log(pair.now, log),
            Err(LogError::Period { .. })
        ));
    }
}

#[test]
fn a_variable_can_be_sent_smaller() {
    let mut pair = Pair::connected(Config::default());
    let mut log = floats(0);
    log.variables = vec![LogVariable {
        name: "f.3".into(),
        send_as: Some(Kind::F16),
    }];
    pair.client.add_log(pair.now, log).unwrap();
    pair.run(ms(100));
    let three = crtp::f16::from_f32(3.0);
    assert_eq!(pair.samples[0].values, [Some(Value::F16(three))]);
}

#[test]
fn a_refused_block_is_reported_with_its_variables() {
    let mut pair = Pair::connected(Config::default());
    // The drone is full of blocks of someone else.
    for block in 0..16 {
        let create = crtp::log::Control::Create {
            block,
            variables: Default::default(),
        };
        pair.drone.handle(pair.now, &create.encode());
    }
    pair.client.add_log(pair.now, floats(2)).unwrap();
    let failed = pair.until(|event| matches!(event, Event::LogFailed { .. }));
    let Event::LogFailed { error, .. } = failed else {
        panic!("{failed:?}");
    };
    let LogError::Refused {
        variables, status, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(
        (&variables[..], *status),
        (&["f.0".to_owned(), "f.1".to_owned()][..], Status::NO_MEMORY)
    );
}
