//! Behaviour over loss, bursts, round trip and rate as a reviewed table: a change in tuning shows as a change of numbers.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use prrt::Repair;

use crate::net::{Conditions, Loss};
use crate::repair::stream;

const MS: Duration = Duration::from_millis(1);
const COUNT: u64 = 20_000;

fn losses() -> [(&'static str, Loss); 6] {
    [
        ("none", Loss::Never),
        ("iid 1 %", Loss::Iid(0.01)),
        ("iid 5 %", Loss::Iid(0.05)),
        ("iid 20 %", Loss::Iid(0.2)),
        (
            "5 %, bursts 5 ms",
            Loss::Bursts {
                share: 0.05,
                mean: 5 * MS,
            },
        ),
        (
            "10 %, bursts 10 ms",
            Loss::Bursts {
                share: 0.1,
                mean: 10 * MS,
            },
        ),
    ]
}

fn row(
    table: &mut String,
    name: &str,
    loss: Loss,
    delay: Duration,
    period: Duration,
    life: Duration,
) {
    let conditions = Conditions {
        delay,
        ..Conditions::wifi(loss)
    };
    let o = stream(Repair::Spread, conditions, period, life, COUNT, 11);
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    writeln!(
        table,
        "| {name} | {:.1} | {:.0} | {:.0} | {} | {:.2} | {:.2} | {:.1} | {:.1} |",
        ms(delay) * 2.0,
        1.0 / period.as_secs_f64(),
        ms(life),
        o.missed,
        o.datagrams,
        o.feedback,
        ms(o.p50),
        ms(o.p99),
    )
    .unwrap();
}

fn table() -> String {
    let mut table = format!(
        "Misses of {COUNT} messages of 32 bytes, one way, spread repairs, jitter 0.4 ms, both directions alike.\n\n\
         | loss | RTT ms | rate Hz | life ms | missed | datagrams | feedback | p50 ms | p99 ms |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    for (delay, period, life) in [
        (Duration::from_micros(3250), 10 * MS, 20 * MS),
        (Duration::from_micros(3250), 10 * MS, 50 * MS),
        (Duration::from_micros(3250), 2 * MS, 20 * MS),
        (Duration::from_micros(3250), 100 * MS, 50 * MS),
        (Duration::from_micros(12_500), 10 * MS, 50 * MS),
        (Duration::from_micros(75_000), 10 * MS, 160 * MS),
    ] {
        for (name, loss) in losses() {
            row(&mut table, name, loss, delay, period, life);
        }
    }
    table
}

/// Run with `UPDATE_SNAPSHOTS=1` to write the table anew, and review the difference.
#[test]
fn table_of_misses_is_as_reviewed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/misses.md");
    let now = table();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &now).unwrap();
    }
    let reviewed = std::fs::read_to_string(&path).unwrap();
    for (line, (is, was)) in now.lines().zip(reviewed.lines()).enumerate() {
        assert_eq!(is, was, "line {}", line + 1);
    }
    assert_eq!(now.lines().count(), reviewed.lines().count());
}
