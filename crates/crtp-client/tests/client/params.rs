//! Parameters: reading, writing, and the answers that are none.

use crtp::{Packet, Status, Value};
use crtp_client::{Config, Event, ParamError, RequestError};

use crate::ms;
use crate::pair::Pair;

fn written(pair: &mut Pair) -> Result<Value, RequestError> {
    match pair.until(|event| matches!(event, Event::ParamWritten { .. })) {
        Event::ParamWritten { outcome, .. } => outcome,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_is_read_by_name() {
    let mut pair = Pair::connected(Config::default());
    let asked = pair.client.read_param(pair.now, "flight.limit").unwrap();
    let event = pair.until(|event| matches!(event, Event::ParamRead { .. }));
    assert_eq!(
        event,
        Event::ParamRead {
            request: asked,
            name: "flight.limit".into(),
            outcome: Ok(Value::I16(-3))
        }
    );
    assert_eq!(pair.client.param("flight.limit"), Some(Value::I16(-3)));
}

#[test]
fn the_echo_of_a_write_is_no_error_code() {
    let mut pair = Pair::connected(Config::default());
    // 2 would be "not found", 13 "read-only", 16 "busy".
    for value in [2, 13, 16, 0] {
        pair.client
            .write_param(pair.now, "flight.mode", value)
            .unwrap();
        assert_eq!(written(&mut pair), Ok(Value::U8(value as u8)));
    }
    assert_eq!(pair.drone.value("flight.mode"), Value::U8(0));
}

#[test]
fn an_answer_cut_to_two_bytes_is_a_typed_error_and_the_next_write_works() {
    let mut pair = Pair::connected(Config::default());
    let cut = Packet::from_bytes(&[0x2e, 1, 0]).unwrap();
    pair.drone.write_answer = Some(Some(cut));
    pair.client
        .write_param(pair.now, "flight.rate", 50)
        .unwrap();
    let truncated = RequestError::Truncated {
        got: 2,
        expected: 6,
    };
    assert_eq!(written(&mut pair), Err(truncated));
    pair.drone.write_answer = None;
    pair.client
        .write_param(pair.now, "flight.rate", 50)
        .unwrap();
    assert_eq!(written(&mut pair), Ok(Value::F32(50.0)));
}

#[test]
fn no_answer_to_a_write_times_out_and_the_next_write_works() {
    let mut pair = Pair::connected(Config::default());
    pair.drone.write_answer = Some(None);
    pair.client.write_param(pair.now, "flight.mode", 3).unwrap();
    pair.client
        .write_param(pair.now, "flight.limit", 4)
        .unwrap();
    assert_eq!(written(&mut pair), Err(RequestError::TimedOut));
    pair.drone.write_answer = None;
    assert_eq!(written(&mut pair), Ok(Value::I16(4)));
}

#[test]
fn an_error_answer_to_a_long_value_is_the_drones_refusal() {
    let mut pair = Pair::connected(Config::default());
    pair.drone.write_answer = Some(Some(Packet::from_bytes(&[0x2e, 1, 0, 2]).unwrap()));
    pair.client
        .write_param(pair.now, "flight.rate", 1.5)
        .unwrap();
    assert_eq!(
        written(&mut pair),
        Err(RequestError::Refused(Status::NOT_FOUND))
    );
}

#[test]
fn a_late_echo_of_an_earlier_write_is_not_taken_for_the_next() {
    let mut pair = Pair::connected(Config::default());
    let late = Packet::from_bytes(&[0x2e, 0, 0, 9]).unwrap();
    pair.client.write_param(pair.now, "flight.mode", 5).unwrap();
    pair.client.handle_packet(pair.now, &late);
    assert_eq!(written(&mut pair), Ok(Value::U8(5)));
    assert_eq!(pair.client.stats().unexpected, 1);
}

#[test]
fn numbers_are_checked_against_the_type_by_name() {
    let mut pair = Pair::connected(Config::default());
    let mut refused = |name: &str, number: f64| {
        let error = pair.client.write_param(pair.now, name, number).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        refused("flight.mode", 256.0),
        "parameter flight.mode: must be a whole number from 0 to 255 (uint8_t), got 256"
    );
    assert_eq!(
        refused("flight.limit", 1.5),
        "parameter flight.limit: must be a whole number from -32768 to 32767 (int16_t), got 1.5"
    );
    assert_eq!(
        refused("flight.rate", f64::NAN),
        "parameter flight.rate: must be a finite float, got NaN"
    );
    assert_eq!(
        refused("deck.present", 0.0),
        "parameter deck.present: read-only"
    );
    assert_eq!(
        refused("no.such", 0.0),
        "parameter no.such: the drone has no such parameter"
    );
    // A whole number for a float, a float without fraction for a whole number.
    pair.client
        .write_param(pair.now, "flight.rate", 50)
        .unwrap();
    assert_eq!(written(&mut pair), Ok(Value::F32(50.0)));
    pair.client
        .write_param(pair.now, "flight.mode", 2.0)
        .unwrap();
    assert_eq!(written(&mut pair), Ok(Value::U8(2)));
}

#[test]
fn a_change_by_the_drone_itself_is_told() {
    let mut pair = Pair::connected(Config::default());
    let packet = pair.drone.change("flight.rate", Value::F32(33.0));
    pair.send_down(&packet, ms(0));
    let event = pair.until(|event| matches!(event, Event::ParamValue { .. }));
    assert_eq!(
        event,
        Event::ParamValue {
            name: "flight.rate".into(),
            value: Value::F32(33.0)
        }
    );
}

#[test]
fn all_values_are_read_if_wanted() {
    let config = Config {
        read_all_params: true,
        ..Config::default()
    };
    let mut pair = Pair::new(config);
    pair.client.connect(pair.now);
    pair.until(|event| *event == Event::ParamsComplete);
    for name in ["flight.mode", "flight.rate", "flight.limit", "deck.present"] {
        assert_eq!(pair.client.param(name), Some(pair.drone.value(name)));
    }
}

#[test]
fn nothing_is_asked_of_a_drone_that_is_not_there() {
    let mut pair = Pair::new(Config::default());
    assert!(matches!(
        pair.client.write_param(pair.now, "flight.mode", 1),
        Err(ParamError::NotConnected { .. })
    ));
    let mut pair = Pair::connected(Config::default());
    pair.dead = true;
    pair.client.read_param(pair.now, "flight.mode").unwrap();
    let event = pair.until(|event| matches!(event, Event::ParamRead { .. }));
    assert!(matches!(
        event,
        Event::ParamRead {
            outcome: Err(RequestError::NotConnected),
            ..
        }
    ));
}
