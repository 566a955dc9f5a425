use super::*;

fn parse(text: &str) -> Uri {
    text.parse().unwrap()
}

#[test]
fn every_form_survives_display_and_parse() {
    for text in [
        "uart:///dev/ttyAMA0?baud=576000&framing=cpx",
        "uart:///dev/ttyUSB0?baud=512000&framing=syslink",
        "prrt://192.168.1.7:5000/20",
        "prrt://0.0.0.0:5000/50?listen=1&insecure=1",
        "prrt://[::1]:5000/50",
        "prrt://pi:5000/50?keepalive=80",
        "udp://127.0.0.1:19850",
        "udp://drone.local:19850?listen=0",
        "udp://0.0.0.0:19850?listen=1&clients=3",
        "tcp://192.168.4.1:5000",
        "radio://0/80/2M/E7E7E7E7E7?safelink=0",
        "sim://?seed=7",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
}

#[test]
fn defaults_are_filled_in() {
    assert_eq!(
        parse("uart:///dev/x").to_string(),
        "uart:///dev/x?baud=576000&framing=cpx"
    );
    assert_eq!(
        parse("uart:///dev/x?framing=syslink").to_string(),
        "uart:///dev/x?baud=512000&framing=syslink"
    );
    assert_eq!(parse("prrt://pi:5000").to_string(), "prrt://pi:5000/50");
    assert_eq!(parse("sim://").to_string(), "sim://?seed=0");
}

#[test]
fn side_wildcard_and_option_decide_who_listens() {
    let plain = parse("prrt://127.0.0.1:5000");
    assert!(plain.listens(Role::From) && !plain.listens(Role::To));
    assert!(parse("prrt://0.0.0.0:5000").listens(Role::To));
    assert!(parse("udp://[::]:19850").listens(Role::To));
    assert!(!parse("udp://127.0.0.1:1?listen=0").listens(Role::From));
    assert!(!parse("uart:///dev/x").listens(Role::From));
}

#[test]
fn only_links_without_a_further_bridge_face_the_drone() {
    for text in [
        "uart:///dev/x",
        "sim://",
        "radio://0/80/2M",
        "udp://127.0.0.1:1",
        "tcp://127.0.0.1:1",
    ] {
        assert!(parse(text).faces_drone(Role::To), "{text}");
    }
    for text in ["prrt://127.0.0.1:1", "udp://0.0.0.0:1"] {
        assert!(!parse(text).faces_drone(Role::To), "{text}");
    }
}

#[test]
fn every_error_names_uri_part_value_and_allowed() {
    for (text, part, value, allowed) in [
        ("", "scheme", "", "uart"),
        ("serial://x", "scheme", "serial", "uart"),
        ("uart://ttyAMA0", "device", "ttyAMA0", "absolute"),
        ("uart:///", "device", "/", "absolute"),
        ("uart:///dev/x?baud=9599", "baud", "9599", "9600 to 2000000"),
        ("uart:///dev/x?baud=fast", "baud", "fast", "9600 to 2000000"),
        (
            "uart:///dev/x?framing=slip",
            "framing",
            "slip",
            "cpx or syslink",
        ),
        ("uart:///dev/x?speed=1", "option", "speed", "baud, framing"),
        ("uart:///dev/x?baud", "option", "baud", "key=value"),
        ("udp://h:1?listen=1&listen=0", "option", "listen", "once"),
        ("udp://localhost", "address", "localhost", "host:port"),
        ("udp://:1", "host", "", "a name"),
        ("udp://::1:1", "host", "::1", "in brackets"),
        ("udp://h:0", "port", "0", "1 to 65535"),
        ("udp://h:65536", "port", "65536", "1 to 65535"),
        ("udp://h:1/2", "port", "1/2", "1 to 65535"),
        ("udp://h:1?listen=yes", "listen", "yes", "0 or 1"),
        ("udp://h:1?clients=17", "clients", "17", "1 to 16"),
        ("udp://h:1?listen=0&clients=2", "listen", "0", "clients="),
        ("udp://h:65534?clients=3", "port", "65534", "65535"),
        ("tcp://h:1?clients=2", "option", "clients", "listen"),
        ("prrt://h:1?keepalive=5", "keepalive", "5", "10 to 400 ms"),
        ("prrt://h:1/0", "target delay", "0", "1 to 10000 ms"),
        ("prrt://h:1/1.5", "target delay", "1.5", "1 to 10000 ms"),
        ("radio://", "address", "", "dongle"),
        ("sim://drone", "address", "drone", "nothing"),
        ("sim://?seed=-1", "seed", "-1", "whole number"),
    ] {
        let error = text.parse::<Uri>().unwrap_err();
        assert_eq!((error.part, error.value.as_str()), (part, value), "{text}");
        let message = error.to_string();
        assert!(
            message.starts_with(text) && message.contains(allowed),
            "{message}"
        );
    }
}
