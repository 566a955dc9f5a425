//! The radio between ground and drone, as far as the driver tells.

use super::network::interfaces;
use crate::doctor::finding::{Check, Judgement, Remedy, Verdict};
use crate::doctor::machine::Machine;
use crate::doctor::profile::Profile;

const POWER_SAVE: &str = "raspberrypi/linux#7533, #7568";
const GATEWAY_LIMIT_MS: f64 = 20.0;
const RETRY_LIMIT: f64 = 0.2;

/// The checks of this group.
pub const CHECKS: &[Check] = &[
    Check {
        id: "wifi.power_save",
        why: "the radio sleeps between beacons: p50 of 49 to 127 ms instead of 6 ms was seen",
        source: POWER_SAVE,
        remedy: Remedy::each(
            "iw dev DEVICE set power_save off; for good: nmcli connection modify NAME 802-11-wireless.powersave 2",
            "nmcli connection modify NAME 802-11-wireless.powersave 2 and reconnect",
            "nmcli connection modify NAME 802-11-wireless.powersave 2 and reconnect",
            false,
            "more power",
        ),
        judge: power_save,
    },
    Check {
        id: "wifi.link",
        why: "2.4 GHz is shared with the drone's own radio and everybody's; a low rate makes every packet long",
        source: "paper set-up: 802.11n on 2.4 GHz, ping 6-7 ms",
        remedy: Remedy::same(
            "use a 5 GHz network, move the antenna, and set the drone's radio channel away from the network's",
            "shorter range at 5 GHz",
        ),
        judge: link,
    },
    Check {
        id: "wifi.retries",
        why: "each repetition in the radio is added latency that no transport can see",
        source: "iw(8), station dump",
        remedy: Remedy::same("another channel, less distance, or a 5 GHz network", "none"),
        judge: retries,
    },
    Check {
        id: "wifi.gateway",
        why: "the round trip to the access point is the floor of everything else",
        source: "raspberrypi/linux#7568: 105-113 ms pings after a regression",
        remedy: Remedy::same(
            "switch power save off first; then compare with another kernel",
            "none",
        ),
        judge: gateway,
    },
];

fn radios(machine: &Machine) -> Vec<String> {
    interfaces(machine)
        .into_iter()
        .filter(|name| machine.exists(&format!("/sys/class/net/{name}/phy80211")))
        .collect()
}

fn no_radio() -> Judgement {
    Judgement::not_applicable("no Wi-Fi interface")
}

/// Asks `iw` about every radio and keeps what could be understood.
fn told<T>(
    machine: &Machine,
    words: &[&str],
    read: impl Fn(&str) -> Option<T>,
) -> Vec<(String, T)> {
    let ask = |name: &String| {
        let mut command = vec!["iw", "dev", name.as_str()];
        command.extend(words);
        machine.command(&command)
    };
    radios(machine)
        .into_iter()
        .filter_map(|name| {
            ask(&name)
                .and_then(|text| read(&text))
                .map(|value| (name, value))
        })
        .collect()
}

fn silent(machine: &Machine) -> Judgement {
    if radios(machine).is_empty() {
        no_radio()
    } else {
        Judgement::cannot_tell("iw is not installed or the driver does not tell")
    }
}

fn power_save(machine: &Machine, profile: Profile) -> Judgement {
    let states = told(machine, &["get", "power_save"], |text| {
        Some(text.contains("on"))
    });
    if states.is_empty() {
        return silent(machine);
    }
    let read: Vec<String> = states
        .iter()
        .map(|(name, on)| format!("{name}: power save {}", if *on { "on" } else { "off" }))
        .collect();
    let bad = if profile == Profile::BridgeOnPi {
        Verdict::Fail
    } else {
        profile.latency_matters()
    };
    Judgement::when(states.iter().any(|(_, on)| *on), bad, read.join(", "))
}

fn link(machine: &Machine, profile: Profile) -> Judgement {
    let field = |text: &str, key: &str| {
        text.lines().find_map(|line| {
            line.trim()
                .strip_prefix(key)
                .map(|value| value.trim().to_owned())
        })
    };
    let links = told(machine, &["link"], |text| {
        let megahertz = field(text, "freq:")?.parse::<f64>().ok()?;
        Some((
            megahertz,
            field(text, "tx bitrate:").unwrap_or_default(),
            field(text, "signal:").unwrap_or_default(),
        ))
    });
    if links.is_empty() {
        return silent(machine);
    }
    let read: Vec<String> = links
        .iter()
        .map(|(name, (mhz, rate, signal))| format!("{name}: {mhz} MHz, {rate}, {signal}"))
        .collect();
    Judgement::when(
        links.iter().any(|(_, (mhz, ..))| *mhz < 3000.0),
        profile.latency_matters(),
        read.join("; "),
    )
}

fn retries(machine: &Machine, profile: Profile) -> Judgement {
    let number = |text: &str, key: &str| {
        text.lines()
            .find_map(|line| line.trim().strip_prefix(key)?.trim().parse::<f64>().ok())
    };
    let shares = told(machine, &["station", "dump"], |text| {
        Some(number(text, "tx retries:")? / number(text, "tx packets:")?.max(1.0))
    });
    if shares.is_empty() {
        return silent(machine);
    }
    let read: Vec<String> = shares
        .iter()
        .map(|(name, share)| format!("{name}: {:.1} repetitions per 100 packets", share * 100.0))
        .collect();
    Judgement::when(
        shares.iter().any(|(_, share)| *share > RETRY_LIMIT),
        profile.latency_matters(),
        read.join(", "),
    )
}

/// Address of the gateway in the hexadecimal little-endian notation of `/proc/net/route`.
fn gateway_address(routes: &str, radios: &[String]) -> Option<std::net::Ipv4Addr> {
    routes.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, "00000000", gateway, ..] = fields[..] else {
            return None;
        };
        let address = u32::from_str_radix(gateway, 16).ok()?;
        radios
            .iter()
            .any(|radio| radio == name)
            .then(|| std::net::Ipv4Addr::from(address.to_le_bytes()))
    })
}

fn gateway(machine: &Machine, profile: Profile) -> Judgement {
    let radios = radios(machine);
    if radios.is_empty() {
        return no_radio();
    }
    let Some(address) = machine
        .text("/proc/net/route")
        .and_then(|routes| gateway_address(&routes, &radios))
    else {
        return Judgement::not_applicable("no gateway behind the radio");
    };
    let output = machine.command(&[
        "ping",
        "-q",
        "-n",
        "-c",
        "5",
        "-i",
        "0.2",
        "-W",
        "1",
        &address.to_string(),
    ]);
    let average = output.as_deref().and_then(|text| {
        text.rsplit_once(" = ")?
            .1
            .split('/')
            .nth(1)?
            .parse::<f64>()
            .ok()
    });
    match average {
        None => Judgement::cannot_tell(format!(
            "the gateway {address} does not answer, or ping is missing"
        )),
        Some(ms) => Judgement::when(
            ms > GATEWAY_LIMIT_MS,
            profile.latency_matters(),
            format!("gateway: {ms} ms mean of 5 round trips"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_behind_the_radio_is_found() {
        let routes = "Iface Destination Gateway Flags\neth0 00000000 0101A8C0 0003\nwlan0 00000000 FE01A8C0 0003\n";
        assert_eq!(
            gateway_address(routes, &["wlan0".to_owned()]),
            Some("192.168.1.254".parse().unwrap())
        );
        assert_eq!(gateway_address(routes, &["wlan1".to_owned()]), None);
    }
}
