//! The serial port to the drone: which hardware, who else uses it, what the driver holds back.

use std::collections::BTreeMap;

use crate::doctor::finding::{Check, Judgement, Remedy, Verdict};
use crate::doctor::machine::Machine;
use crate::doctor::profile::Profile;

/// Baud rate of the drone's UART unless configured otherwise.
const BAUD: f64 = 576_000.0;
/// A receiver tolerates about this relative error over ten bits.
const BAUD_TOLERANCE: f64 = 0.02;
const ASYNC_LOW_LATENCY: i64 = 1 << 13;
const CONFIG: &str = "/boot/firmware/config.txt";

/// The checks of this group.
pub const CHECKS: &[Check] = &[
    Check {
        id: "uart.device",
        why: "the mini-UART's clock follows the core clock and it has no receive time-out: wrong for control",
        source: "Raspberry Pi documentation: UARTs",
        remedy: Remedy::each(
            "use the main UART or a USB adapter",
            "use the main UART or a USB adapter",
            "dtoverlay=disable-bt and enable_uart=1 in /boot/firmware/config.txt, then use /dev/ttyAMA0",
            true,
            "disable-bt switches Bluetooth off",
        ),
        judge: device,
    },
    Check {
        id: "uart.permission",
        why: "the port must be open to the user who runs the bridge",
        source: "udev rules of the distribution",
        remedy: Remedy::same(
            "usermod -aG dialout USER and log in again",
            "members may use every serial port",
        ),
        judge: permission,
    },
    Check {
        id: "uart.console",
        why: "a login or boot console on the same port talks into the protocol",
        source: "Raspberry Pi documentation: UARTs",
        remedy: Remedy::each(
            "remove console=tty… of this port from GRUB_CMDLINE_LINUX; systemctl disable --now serial-getty@PORT",
            "remove console=tty… of this port from GRUB_CMDLINE_LINUX; systemctl disable --now serial-getty@PORT",
            "raspi-config: Interface Options, Serial Port: login shell no, hardware yes",
            true,
            "no console on that port",
        ),
        judge: console,
    },
    Check {
        id: "uart.bluetooth",
        why: "Bluetooth takes the good UART and leaves the mini-UART on the header, except on the Pi 5",
        source: "Raspberry Pi documentation: UARTs",
        remedy: Remedy::each(
            "not needed",
            "not needed",
            "dtoverlay=disable-bt (or miniuart-bt) in /boot/firmware/config.txt",
            true,
            "Bluetooth off or slow",
        ),
        judge: bluetooth,
    },
    Check {
        id: "uart.receive_floor",
        why: "a frame that does not fill the FIFO waits 32 bit times for the receive time-out",
        source: "raspberrypi/linux#5794, john30/ebusd#91, raspberrypi/linux#4453",
        remedy: Remedy::NONE,
        judge: receive_floor,
    },
    Check {
        id: "uart.usb_latency_timer",
        why: "an FTDI adapter keeps bytes back for this long: 16 ms by default, 1 ms is possible",
        source: "pyserial/pyserial#287, ROBOTIS-GIT/DynamixelSDK#511, serialport/node-serialport#2102",
        remedy: Remedy::same(
            "echo 1 into /sys/bus/usb-serial/devices/PORT/latency_timer; for good by a udev rule ATTR{latency_timer}=\"1\"",
            "more USB traffic",
        ),
        judge: latency_timer,
    },
    Check {
        id: "uart.low_latency",
        why: "drivers that still know the flag push bytes on at once",
        source: "serialport/serialport-rs#3, Rahix/profirust#22",
        remedy: Remedy::same(
            "setserial /dev/PORT low_latency; the bridge asks for it by itself",
            "more interrupts",
        ),
        judge: low_latency,
    },
    Check {
        id: "uart.baud",
        why: "the port's clock divided down must come close to the drone's 576000 baud",
        source: "Crazyflie UART default; PL011 divisor of 1/64 steps",
        remedy: Remedy::same(
            "choose init_uart_clock= in config.txt or another baud on both sides",
            "none",
        ),
        judge: baud,
    },
    Check {
        id: "uart.errors",
        why: "overruns and framing errors are lost packets that look like a bad link",
        source: "raspberrypi/linux#4453",
        remedy: Remedy::same(
            "a lower baud, shorter wires, or another core for the port's interrupt",
            "none",
        ),
        judge: errors,
    },
    Check {
        id: "uart.modem_manager",
        why: "ModemManager opens new serial ports and sends modem commands into them",
        source: "freedesktop ModemManager documentation",
        remedy: Remedy::same(
            "systemctl disable --now ModemManager, or a udev rule with ID_MM_DEVICE_IGNORE=1",
            "no mobile broadband",
        ),
        judge: modem_manager,
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pl011,
    MiniUart,
    Usb,
    Other,
}

/// Serial ports with hardware behind them: name, driver, kind.
fn ports(machine: &Machine) -> Vec<(String, String, Kind)> {
    let names = machine.names("/sys/class/tty").into_iter();
    names.filter_map(|name| port(machine, name)).collect()
}

fn port(machine: &Machine, name: String) -> Option<(String, String, Kind)> {
    let uevent = machine.text(&format!("/sys/class/tty/{name}/device/uevent"))?;
    let driver = uevent
        .lines()
        .find_map(|line| line.strip_prefix("DRIVER="))?
        .to_owned();
    // A port of type 0 is a slot that the driver lists although no chip is there.
    let empty =
        machine.number(&format!("/sys/class/tty/{name}/type")) == Some(0) || driver == "serial8250";
    (!empty).then(|| {
        let kind = kind(machine, &name, &driver);
        (name, driver, kind)
    })
}

/// By driver, or by name where the kernel (6.5 and later) shows its generic `port` driver.
fn kind(machine: &Machine, name: &str, driver: &str) -> Kind {
    let pi = || {
        machine
            .text("/proc/device-tree/model")
            .is_some_and(|model| model.contains("Raspberry Pi"))
    };
    match driver {
        "uart-pl011" => Kind::Pl011,
        "bcm2835-aux-uart" => Kind::MiniUart,
        _ if name.starts_with("ttyAMA") => Kind::Pl011,
        _ if name.starts_with("ttyUSB") || name.starts_with("ttyACM") => Kind::Usb,
        _ if name.starts_with("ttyS") && pi() => Kind::MiniUart,
        _ => Kind::Other,
    }
}

fn no_port(profile: Profile) -> Judgement {
    let read = "no serial port with hardware behind it";
    if profile.wants_uart() {
        Judgement::cannot_tell(read)
    } else {
        Judgement::not_applicable(read)
    }
}

fn device(machine: &Machine, profile: Profile) -> Judgement {
    let ports = ports(machine);
    if !machine.exists("/sys/class/tty") {
        return Judgement::cannot_tell("/sys/class/tty is not readable");
    }
    if ports.is_empty() {
        return if profile.wants_uart() {
            Judgement::fail("no serial port with hardware behind it")
        } else {
            no_port(profile)
        };
    }
    let read: Vec<String> = ports
        .iter()
        .map(|(name, driver, kind)| format!("{name}: {driver} ({kind:?})"))
        .collect();
    let only_mini = ports.iter().all(|(.., kind)| *kind == Kind::MiniUart);
    Judgement::when(
        only_mini && profile.wants_uart(),
        Verdict::Warn,
        read.join(", "),
    )
}

fn permission(machine: &Machine, profile: Profile) -> Judgement {
    let ports = ports(machine);
    let groups = machine.command(&["id", "-nG"]).unwrap_or_default();
    let told: Vec<(String, bool)> = ports
        .iter()
        .filter_map(|(name, ..)| {
            let text = machine.command(&["stat", "-c", "%U:%G:%a", &format!("/dev/{name}")])?;
            let group = text.split(':').nth(1)?;
            let may = groups
                .split_whitespace()
                .any(|own| own == group || own == "root");
            Some((format!("{name} {text}"), may))
        })
        .collect();
    if told.is_empty() {
        return no_port(profile);
    }
    let read: Vec<&str> = told.iter().map(|(text, _)| text.as_str()).collect();
    let read = format!("{}; groups: {groups}", read.join(", "));
    Judgement::when(
        told.iter().all(|(_, may)| !may) && profile.wants_uart(),
        Verdict::Fail,
        read,
    )
}

fn console(machine: &Machine, profile: Profile) -> Judgement {
    let line = machine.text("/proc/cmdline").unwrap_or_default();
    let ports = ports(machine);
    let taken: Vec<&str> = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("console=")?.split(',').next())
        .filter(|console| *console == "serial0" || ports.iter().any(|(name, ..)| name == console))
        .collect();
    if ports.is_empty() {
        return no_port(profile);
    }
    let read = if taken.is_empty() {
        "no console on a serial port".to_owned()
    } else {
        format!("console on {}", taken.join(", "))
    };
    Judgement::when(
        !taken.is_empty() && profile.wants_uart(),
        Verdict::Fail,
        read,
    )
}

fn bluetooth(machine: &Machine, profile: Profile) -> Judgement {
    let model = machine.text("/proc/device-tree/model").unwrap_or_default();
    let Some(config) = machine
        .text(CONFIG)
        .or_else(|| machine.text("/boot/config.txt"))
    else {
        return Judgement::not_applicable("not a Raspberry Pi");
    };
    let moved = config.lines().map(str::trim).any(|line| {
        line.starts_with("dtoverlay=disable-bt") || line.starts_with("dtoverlay=miniuart-bt")
    });
    let separate = model.contains("Raspberry Pi 5");
    let read = format!(
        "{}; overlay that frees the UART: {}",
        model.trim_end_matches('\0'),
        if moved { "yes" } else { "no" }
    );
    Judgement::when(
        !moved && !separate && profile.wants_uart(),
        Verdict::Warn,
        read,
    )
}

fn receive_floor(machine: &Machine, profile: Profile) -> Judgement {
    let fifos: Vec<String> = ports(machine)
        .into_iter()
        .filter_map(|(name, ..)| {
            machine
                .number(&format!("/sys/class/tty/{name}/xmit_fifo_size"))
                .map(|size| format!("{name}: FIFO {size}"))
        })
        .collect();
    if fifos.is_empty() {
        return no_port(profile);
    }
    Judgement::pass(format!(
        "{}; floor at {BAUD} baud: {:.0} us",
        fifos.join(", "),
        32.0 / BAUD * 1e6
    ))
}

fn latency_timer(machine: &Machine, profile: Profile) -> Judgement {
    let folder = "/sys/bus/usb-serial/devices";
    let timers: BTreeMap<String, i64> = machine
        .names(folder)
        .into_iter()
        .filter_map(|name| {
            machine
                .number(&format!("{folder}/{name}/latency_timer"))
                .map(|ms| (name, ms))
        })
        .collect();
    if timers.is_empty() {
        return Judgement::not_applicable("no USB serial adapter with a latency timer");
    }
    let read: Vec<String> = timers
        .iter()
        .map(|(name, ms)| format!("{name}: {ms} ms"))
        .collect();
    Judgement::when(
        timers.iter().any(|(_, ms)| *ms > 1),
        profile.latency_matters(),
        read.join(", "),
    )
}

fn low_latency(machine: &Machine, profile: Profile) -> Judgement {
    let flags: Vec<(String, bool)> = ports(machine)
        .into_iter()
        .filter_map(|(name, ..)| {
            let text = machine.text(&format!("/sys/class/tty/{name}/flags"))?;
            let bits = i64::from_str_radix(text.trim_start_matches("0x"), 16).ok()?;
            Some((name, bits & ASYNC_LOW_LATENCY != 0))
        })
        .collect();
    if flags.is_empty() {
        return no_port(profile);
    }
    let read: Vec<String> = flags
        .iter()
        .map(|(name, set)| {
            format!(
                "{name}: low_latency {}",
                if *set { "set" } else { "not set" }
            )
        })
        .collect();
    Judgement::pass(read.join(", "))
}

/// A PL011 divides its clock by 16 and a divisor in steps of 1/64.
fn pl011_error(clock_hz: f64) -> f64 {
    let divisor = (clock_hz * 4.0 / BAUD).round().max(64.0);
    (clock_hz * 4.0 / divisor - BAUD).abs() / BAUD
}

fn baud(machine: &Machine, profile: Profile) -> Judgement {
    let clocks: Vec<(String, f64)> = ports(machine)
        .into_iter()
        .filter(|(.., kind)| *kind == Kind::Pl011)
        .filter_map(|(name, ..)| {
            machine
                .number(&format!("/sys/class/tty/{name}/uartclk"))
                .filter(|hz| *hz > 0)
                .map(|hz| (name, hz as f64))
        })
        .collect();
    if clocks.is_empty() {
        return Judgement::cannot_tell("no port tells its clock");
    }
    let read: Vec<String> = clocks
        .iter()
        .map(|(name, hz)| format!("{name}: {hz} Hz, error {:.2} %", pl011_error(*hz) * 100.0))
        .collect();
    let off = clocks
        .iter()
        .any(|(_, hz)| pl011_error(*hz) > BAUD_TOLERANCE);
    Judgement::when(off && profile.wants_uart(), Verdict::Warn, read.join(", "))
}

/// Sums of the error counters in a text of `/proc/tty/driver/*`: frame, parity, break, overrun.
fn error_counts(text: &str) -> Vec<(&'static str, u64)> {
    let sum = |key: &'static str| {
        let counts = text.split_whitespace().filter_map(|word| {
            word.strip_prefix(key)?
                .strip_prefix(':')?
                .parse::<u64>()
                .ok()
        });
        (key, counts.sum())
    };
    ["fe", "pe", "brk", "oe"].map(sum).to_vec()
}

fn errors(machine: &Machine, profile: Profile) -> Judgement {
    let drivers = machine.names("/proc/tty/driver");
    let texts: Vec<String> = drivers
        .iter()
        .filter_map(|name| machine.text(&format!("/proc/tty/driver/{name}")))
        .filter(|text| text.contains("tx:"))
        .collect();
    if texts.is_empty() {
        return Judgement::cannot_tell(
            "/proc/tty/driver is not readable (root only) or counts nothing",
        );
    }
    let counts = error_counts(&texts.join("\n"));
    let read: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let any = counts
        .iter()
        .any(|(name, count)| *count > 0 && *name != "brk");
    Judgement::when(any && profile.wants_uart(), Verdict::Warn, read.join(", "))
}

fn modem_manager(machine: &Machine, profile: Profile) -> Judgement {
    let runs = machine.runs("ModemManager");
    let read = if runs {
        "ModemManager runs"
    } else {
        "ModemManager does not run"
    };
    Judgement::when(runs && profile.wants_uart(), Verdict::Warn, read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pi_clock_makes_the_drones_baud() {
        assert!(pl011_error(48e6) < 0.002, "{}", pl011_error(48e6));
        assert!(pl011_error(14.7456e6) < 0.01 && pl011_error(3e6) > 0.02);
    }

    #[test]
    fn error_counters_are_summed_over_ports() {
        let text = "0: uart:PL011 rev2 mmio:0x1 irq:114 tx:10 rx:20 fe:2 oe:1 RTS|CTS\n1: uart:PL011 tx:1 rx:0 oe:3\n";
        assert_eq!(
            error_counts(text),
            [("fe", 2), ("pe", 0), ("brk", 0), ("oe", 4)]
        );
    }
}
