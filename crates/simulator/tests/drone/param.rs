//! Parameters: read, write, by name, persistence, and what they do.

use crate::bench::{Bench, text};

fn hex_id(bench: &mut Bench, group: &str, name: &str) -> String {
    text(&bench.id("2c", group, name).to_le_bytes())
}

#[test]
fn a_write_is_echoed_without_a_status_and_read_back() {
    let mut bench = Bench::ready();
    let id = hex_id(&mut bench, "stabilizer", "controller");
    assert_eq!(bench.ask(&format!("2e{id}02")), [format!("2e{id}02")]);
    assert_eq!(bench.ask(&format!("2d{id}")), [format!("2d{id}0002")]);
}

#[test]
fn a_read_only_parameter_gives_no_answer_to_a_write() {
    let mut bench = Bench::ready();
    let id = hex_id(&mut bench, "deck", "cpxOverUART2");
    assert!(bench.ask(&format!("2e{id}00")).is_empty());
    assert_eq!(bench.ask(&format!("2d{id}")), [format!("2d{id}0001")]);
}

#[test]
fn bad_ids_are_no_such_entry() {
    let mut bench = Bench::ready();
    assert_eq!(bench.ask("2dffff"), ["2dffff02"]);
    assert_eq!(bench.ask("2effff01"), ["2effff02"]);
    assert_eq!(bench.ask("2f070000"), ["2f07000002"], "not extended");
}

#[test]
fn set_by_name_answers_with_the_name_and_a_status() {
    let mut bench = Bench::ready();
    let name = text(b"kalman\0initialX\0");
    assert_eq!(
        bench.ask(&format!("2f00{name}060000c03f")),
        [format!("2f00{name}00")]
    );
    let id = hex_id(&mut bench, "kalman", "initialX");
    assert_eq!(bench.ask(&format!("2d{id}")), [format!("2d{id}000000c03f")]);
    assert_eq!(
        bench.ask(&format!("2f00{name}0801")),
        [format!("2f00{name}16")],
        "wrong type"
    );
    let nobody = text(b"kalman\0nobody\0");
    assert_eq!(
        bench.ask(&format!("2f00{nobody}0801")),
        [format!("2f00{nobody}02")]
    );
    let fixed = text(b"deck\0bcAI\0");
    assert_eq!(
        bench.ask(&format!("2f00{fixed}0801")),
        [format!("2f00{fixed}0d")],
        "read-only"
    );
}

#[test]
fn persistent_parameters_are_stored_cleared_and_have_a_default() {
    let mut bench = Bench::ready();
    let id = hex_id(&mut bench, "ring", "effect");
    assert_eq!(bench.ask(&format!("2f02{id}")), [format!("2f02{id}01")]);
    assert_eq!(bench.ask(&format!("2f07{id}")), [format!("2f07{id}0001")]);
    assert_eq!(
        bench.ask(&format!("2f04{id}")),
        [format!("2f04{id}0006")],
        "not stored"
    );
    bench.ask(&format!("2e{id}0d"));
    assert_eq!(bench.ask(&format!("2f03{id}")), [format!("2f03{id}00")]);
    assert_eq!(
        bench.ask(&format!("2f04{id}")),
        [format!("2f04{id}01060d")],
        "stored"
    );
    assert_eq!(bench.ask(&format!("2f05{id}")), [format!("2f05{id}00")]);
    assert_eq!(bench.ask(&format!("2f04{id}")), [format!("2f04{id}0006")]);
    assert_eq!(bench.ask(&format!("2f06{id}")), [format!("2f06{id}06")]);
    assert_eq!(bench.ask(&format!("2f08{id}")), [format!("2f08{id}0006")]);
    let fixed = hex_id(&mut bench, "deck", "bcAI");
    assert_eq!(
        bench.ask(&format!("2f08{fixed}")),
        [format!("2f08{fixed}02")]
    );
}

#[test]
fn values_changed_on_board_are_announced() {
    let mut bench = Bench::ready();
    let id = hex_id(&mut bench, "kalman", "resetEstimation");
    assert_eq!(
        bench.ask(&format!("2e{id}01")),
        [format!("2e{id}01"), format!("2301{id}00")]
    );
    let ring = hex_id(&mut bench, "ring", "effect");
    assert!(
        bench
            .drone
            .set_parameter("ring", "effect", crtp::Value::U8(9))
    );
    assert_eq!(bench.received(), [format!("2301{ring}09")]);
    assert!(
        !bench
            .drone
            .set_parameter("ring", "effect", crtp::Value::F32(9.0))
    );
    assert!(
        !bench
            .drone
            .set_parameter("ring", "nobody", crtp::Value::U8(9))
    );
}

#[test]
fn the_stop_parameter_stops_the_drone_for_good() {
    let mut bench = Bench::ready();
    let id = hex_id(&mut bench, "stabilizer", "stop");
    bench.ask(&format!("2e{id}01"));
    bench.run(100);
    assert_eq!(bench.info() & 0x40, 0x40);
}
