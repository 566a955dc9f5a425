use super::*;
use crate::policy::LinkLoss;

const MINIMAL: &str = "robots:\n  cf1:\n    uri: prrt://127.0.0.1:5000\n";

fn error(text: &str) -> String {
    Fleet::read(text).unwrap_err().to_string()
}

fn only(text: &str) -> Robot {
    Fleet::read(text).unwrap().robots.remove(0)
}

#[test]
fn one_uri_is_enough() {
    let robot = only(MINIMAL);
    assert!(robot.enabled);
    assert_eq!(
        (robot.name.as_str(), robot.reference_frame.as_str()),
        ("cf1", "world")
    );
    assert_eq!(robot.topics.imu, Some(Duration::from_millis(20)));
    assert_eq!(robot.topics.scan, None);
    assert_eq!(robot.safety, Safety::default());
}

#[test]
fn a_crazyswarm2_file_is_read_with_its_precedence() {
    let robot = only(
        "fileversion: 3
robots:
  cf231:
    enabled: true
    uri: radio://0/80/2M/E7E7E7E7E7
    initial_position: [0.0, 0.5, 0]
    type: cf21
    firmware_params: {stabilizer: {estimator: 1}}
robot_types:
  cf21:
    motion_capture: {tracking: librigidbodytracker, marker: default, dynamics: default}
    big_quad: false
    battery: {voltage_warning: 3.6, voltage_critical: 3.5}
    firmware_params: {stabilizer: {estimator: 3, controller: 1}}
    firmware_logging: {default_topics: {odom: {frequency: 100}}}
all:
  reference_frame: map
  firmware_logging:
    enabled: true
    default_topics: {pose: {frequency: 10}, status: {frequency: 1}}
    custom_topics: {extra: {frequency: 4, vars: [stateEstimateZ.x, pm.vbat]}}
  firmware_params:
    commander: {enHighLevel: 1}
    stabilizer: {estimator: 2, controller: 2}
    locSrv: {extPosStdDev: 1e-3}
  broadcasts: {num_repeats: 15, delay_between_repeats_ms: 1}
",
    );
    let params: Vec<_> = robot.params.into_iter().collect();
    let expected = [
        ("commander.enHighLevel", ParamSetting::Whole(1)),
        ("locSrv.extPosStdDev", ParamSetting::Float(1e-3)),
        ("stabilizer.controller", ParamSetting::Whole(1)),
        ("stabilizer.estimator", ParamSetting::Whole(1)),
    ];
    assert_eq!(
        params,
        expected.map(|(name, value)| (name.to_owned(), value))
    );
    let topics = robot.topics;
    let ms = |period: Option<Duration>| period.map(|period| period.as_millis());
    assert_eq!(
        (ms(topics.pose), ms(topics.odom), ms(topics.imu)),
        (Some(100), Some(10), None)
    );
    assert_eq!(
        topics.custom["extra"].variables,
        ["stateEstimateZ.x", "pm.vbat"]
    );
    assert_eq!(
        (robot.reference_frame.as_str(), robot.battery.critical),
        ("map", 3.5)
    );
}

#[test]
fn disabled_robots_and_kinds_without_connection_are_not_connected() {
    let fleet = Fleet::read(
        "robots:
  a: {enabled: false, uri: 'sim://'}
  b: {uri: 'sim://', type: marker}
  c: {uri: 'sim://'}
robot_types:
  marker: {connection: none}
",
    )
    .unwrap();
    let names: Vec<_> = fleet.enabled().map(|robot| robot.name.as_str()).collect();
    assert_eq!(names, ["c"]);
}

#[test]
fn link_loss_is_layered_and_checked() {
    let robot = only(
        "robots:
  cf1: {uri: 'sim://', link_loss: {policy: hold, hold_ms: 2000}}
all: {link_loss: {policy: stop, silence_ms: 200, high_level_ms: 0}}
",
    );
    let expected = Safety {
        link_loss: LinkLoss::Hold,
        silence: Duration::from_millis(200),
        hold_limit: Duration::from_secs(2),
        high_level_limit: None,
        watchdog: false,
    };
    assert_eq!(robot.safety, expected);
    let late = error("robots:\n  cf1: {uri: 'sim://', link_loss: {silence_ms: 500}}\n");
    assert!(
        late.contains("robots.cf1.link_loss.silence_ms is 500") && late.contains("50 to 450 ms"),
        "{late}"
    );
}

#[test]
fn logging_can_be_turned_off() {
    let robot = only(&format!(
        "{MINIMAL}all: {{firmware_logging: {{enabled: false}}}}\n"
    ));
    assert_eq!(robot.topics, Topics::default());
}

#[test]
fn each_mistake_is_named_with_key_value_and_what_is_allowed() {
    for (text, words) in [
        ("robots:\n  1: {uri: 'sim://'}\n", &["\"1\"", "\"cf1\""][..]),
        (
            "robots:\n  cf-2: {uri: 'sim://'}\n",
            &["\"cf-2\"", "\"cf_2\""],
        ),
        ("robots:\n  ä: {uri: 'sim://'}\n", &["\"ä\"", "\"cf1\""]),
        ("robots:\n  '': {uri: 'sim://'}\n", &["\"\"", "\"cf1\""]),
        (
            "robots:\n  192_168_0_5: {uri: 'sim://'}\n",
            &["cf_192_168_0_5"],
        ),
        (
            "robots:\n  cf1: {uri: 'serial://x'}\n",
            &["robots.cf1.uri", "scheme is \"serial\"", "uart"],
        ),
        ("robots:\n  cf1: {url: 'sim://'}\n", &["url", "uri"]),
        (
            "robots:\n  cf1: {uri: 'sim://', type: cf99}\n",
            &["robots.cf1.type is \"cf99\""],
        ),
        (
            "robots:\n  cf1: {uri: 'sim://', enabled: maybe}\n",
            &["enabled"],
        ),
        (
            "fileversion: 2\nrobots: {}\n",
            &["fileversion is 2", "allowed: 3"],
        ),
        (
            "robots:\n  cf1: {uri: 'sim://', firmware_params: {sound: {effect: '50'}}}\n",
            &["effect"],
        ),
        (
            "robots:\n  cf1: {uri: 'sim://', firmware_logging: {default_topics: {pose: {frequency: 1000}}}}\n",
            &[
                "robots.cf1.firmware_logging.default_topics.pose.frequency is 1000",
                "0.02 to 500",
            ],
        ),
        (
            "robots:\n  cf1: {uri: 'sim://', firmware_logging: {default_topics: {twist: {frequency: 1}}}}\n",
            &["\"twist\"", "pose, odom, imu"],
        ),
        (
            "robots:\n  cf1: {uri: 'sim://', firmware_logging: {custom_topics: {x: {frequency: 1, vars: [a b.c]}}}}\n",
            &[
                "robots.cf1.firmware_logging.custom_topics.x.vars is \"a b.c\"",
                "without spaces",
            ],
        ),
    ] {
        let message = error(text);
        for word in words {
            assert!(message.contains(word), "{word} is not in: {message}");
        }
    }
}

#[test]
fn the_same_name_twice_is_refused() {
    assert!(error("robots:\n  cf1: {uri: 'sim://'}\n  cf1: {uri: 'sim://'}\n").contains("cf1"));
    let twice = "{x: {frequency: 1, vars: [a.b]}, x: {frequency: 2, vars: [a.c]}}";
    let text = format!(
        "robots:\n  cf1: {{uri: 'sim://', firmware_logging: {{custom_topics: {twice}}}}}\n"
    );
    assert!(error(&text).contains("key: x"), "{}", error(&text));
}

#[test]
fn a_topic_may_not_have_the_name_of_one_of_ours() {
    for name in ["pose", "cmd_vel", "console"] {
        let text = format!(
            "robots:\n  cf1: {{uri: 'sim://', firmware_logging: {{custom_topics: {{{name}: {{frequency: 1, vars: [a.b]}}}}}}}}\n"
        );
        assert!(
            error(&text).contains(&format!("custom_topics.{name} is \"{name}\"")),
            "{}",
            error(&text)
        );
    }
}

#[test]
fn robots_that_come_later_take_the_files_defaults() {
    let text = "robots:\n  cf1: {uri: 'udp://127.0.0.1:1'}\nrobot_types: {cf21: {battery: {voltage_warning: 3.9, \
                voltage_critical: 3.1}}}\nall: {reference_frame: lab}\n";
    let more = |name: &str, settings: &str| [(name.to_owned(), settings.to_owned())];
    let fleet =
        Fleet::read_with(text, &more("cf2", "{uri: 'udp://127.0.0.1:2', type: cf21}")).unwrap();
    let robot = fleet
        .robots
        .iter()
        .find(|robot| robot.name.as_str() == "cf2")
        .unwrap();
    assert_eq!(
        (robot.reference_frame.as_str(), robot.battery.critical),
        ("lab", 3.1)
    );
    for (name, settings, part) in [
        ("cf1", "{uri: 'udp://127.0.0.1:2'}", "robots is cf1"),
        ("cf-2", "{uri: 'udp://127.0.0.1:2'}", "cf_2"),
        ("cf2", "{uri: 'udp://127.0.0.1:1'}", "robots.cf1"),
        ("cf2", "{url: x}", "url"),
        ("cf2", "", "cf2"),
    ] {
        let error = Fleet::read_with(text, &more(name, settings))
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn topics_at_run_time_are_checked_as_in_the_file() {
    let variables = ["pm.vbat".to_owned()];
    assert_eq!(
        late_topic("pose", 10.0, &[]),
        Ok((Duration::from_millis(100), Vec::new()))
    );
    assert_eq!(
        late_topic("x", 100.0, &variables),
        Ok((Duration::from_millis(10), variables.to_vec()))
    );
    for (name, hz, variable, part) in [
        ("x", 0.0, "a.b", "topic x.frequency is 0"),
        ("pose", 501.0, "a.b", "0.02 to 500"),
        ("x y", 1.0, "a.b", "\"x y\""),
        ("cmd_vel", 1.0, "a.b", "cmd_vel"),
        ("x", 1.0, "a b", "without spaces"),
    ] {
        let error = late_topic(name, hz, &[variable.to_owned()])
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn link_health_is_settled_field_by_field() {
    let robot = only(
        "robots: {cf1: {uri: 'udp://a:1', link_health: {degraded: {misses: 3}, on_failing: land}}}
all: {link_health: {degraded: {success_below: 0.9, misses: 1}, on_degraded: slow_down, slow_down_to: 0.25, answer_within_ms: 100}}
",
    );
    let (thresholds, reaction) = (robot.thresholds, robot.reaction);
    assert_eq!(thresholds.degraded.success_below, 0.9);
    assert_eq!(thresholds.degraded.misses, 3);
    assert_eq!(thresholds.answer_within, Duration::from_millis(100));
    assert_eq!(thresholds.failing, Thresholds::default().failing);
    assert_eq!(reaction.on_degraded, crate::health::OnDegraded::SlowDown);
    assert_eq!(reaction.on_failing, crate::health::OnFailing::Land);
    assert_eq!(reaction.slow_down_to, 0.25);
    assert_eq!(only(MINIMAL).reaction, Reaction::default());
}

#[test]
fn link_health_that_makes_no_sense_is_refused_with_key_value_and_what_is_allowed() {
    for (settings, words) in [
        ("{on_degraded: land}", &["land", "none", "slow_down"][..]),
        (
            "{on_failing: stop}",
            &["stop", "none", "slow_down", "hover", "land"],
        ),
        (
            "{slow_down_to: 1.5}",
            &["robots.cf1.link_health.slow_down_to is 1.5", "0 to 1"],
        ),
        (
            "{degraded: {success_below: -1}}",
            &["link_health.degraded.success_below is -1", "0 to 1"],
        ),
        (
            "{failing: {misses: 0}}",
            &["link_health.failing.misses is 0", "1 to 100"],
        ),
        (
            "{answer_within_ms: 0}",
            &["link_health.answer_within_ms is 0", "1 to 1000 ms"],
        ),
        (
            "{leave_after: 101}",
            &["link_health.leave_after is 101", "1 to 100"],
        ),
        (
            "{failing: {success_below: 0.99}}",
            &["link_health.failing.success_below is 0.99", "0.95"],
        ),
        (
            "{failing: {misses: 1}}",
            &[
                "link_health.failing.misses is 1",
                "at least those of degraded, 2",
            ],
        ),
        (
            "{lost_misses: 3}",
            &["link_health.lost_misses is 3", "failing, 4"],
        ),
        ("{colour: red}", &["colour"]),
    ] {
        let said = error(&format!("{MINIMAL}    link_health: {settings}\n"));
        for word in words {
            assert!(said.contains(word), "{said:?} has no {word:?}");
        }
    }
}
