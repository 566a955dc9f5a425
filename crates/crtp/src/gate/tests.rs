use proptest::prelude::*;

use super::*;

fn packet(hex: &str) -> Packet {
    let bytes: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
        .collect();
    Packet::from_bytes(&bytes).unwrap()
}

fn gate() -> Gate {
    let mut gate = Gate::new();
    gate.observe(&packet("400102"));
    gate
}

fn verdict(hex: &str) -> Result<(), Reject> {
    gate().admit(&packet(hex)).map(|_| ())
}

#[test]
fn packets_that_crash_real_firmware_are_refused() {
    for (hex, reject) in [
        ("7c", Reject::SetpointEmpty),
        ("7c0a00", Reject::SetpointLength),
        ("7c0600", Reject::SetpointLength),
        ("7c07aabb", Reject::SetpointLength),
        ("7c03", Reject::SetpointLength),
        ("7c0301dc05dc05dc05e803", Reject::SetpointLength),
        ("7c0c", Reject::SetpointType),
        ("7cff", Reject::SetpointType),
        ("7d", Reject::MetaLength),
        ("7d00", Reject::MetaLength),
        ("7d01", Reject::UnknownCommand),
        ("4c0263", Reject::MemoryUnknown),
        ("4c0202", Reject::MemoryUnknown),
        ("4d", Reject::MemoryLength),
        ("4d630000000018", Reject::MemoryUnknown),
        ("4d000000000019", Reject::MemoryReadTooLong),
        ("4e0000000000", Reject::MemoryLength),
        ("4e630000000000", Reject::MemoryUnknown),
        ("3c00", Reject::RpytLength),
        ("6c0000803f", Reject::LocalizationLength),
        ("6d080000803f", Reject::LocalizationLength),
        ("6e", Reject::LocalizationLength),
        ("8c", Reject::HighLevelLength),
        ("8c0c00", Reject::HighLevelLength),
        ("8c0e", Reject::UnknownCommand),
        ("9d01", Reject::SupervisorLength),
        ("9c0d", Reject::UnknownCommand),
        ("5d0601077f", Reject::LogLength),
        ("5d060107ffff", Reject::LogRawMemory),
        ("5d0601007f00", Reject::LogType),
        ("5d0601097f00", Reject::LogType),
        ("2d00", Reject::ParamLength),
        ("2e2600", Reject::ParamLength),
        ("2f006b616c6d616e00696e", Reject::ParamByName),
        ("0c41", Reject::UnknownPort),
        ("cc", Reject::UnknownPort),
        ("3d", Reject::UnknownChannel),
        ("5e", Reject::UnknownChannel),
        ("df", Reject::UnknownChannel),
    ] {
        assert_eq!(verdict(hex), Err(reject), "{hex}");
    }
}

#[test]
fn packets_of_real_clients_are_admitted() {
    for hex in [
        "3c000020410000a0400000a0413075",
        "7c00",
        "7c010000003f000080becdcccc3d0000f0c1",
        "7c0300dc05dc05dc05e803",
        "7c070000803f000000400000003f0000b442",
        "7c0b0000a0400000404000002041b88800",
        "7c06e80330f8f4016400c800d4fe000000005226000000c06400c800d4fe",
        "7d0000000000",
        "8c0003",
        "8c0300",
        "8c0400000000803f000000000000003f0000000000004040",
        "8c05000100010000803f",
        "8c06010100000000000a",
        "8c07000000003f000000000000000040",
        "8c0b000001db0fc93f0000003f0000803fcdcc4c3e00004040",
        "8c0d00010000010000803f",
        "6c0000803f0000004000004040",
        "6d080000803f00000040000040400000000000000000000000000000803f",
        "6d02050102",
        "6d03",
        "6d04",
        "6d0b03000100",
        "fd00",
        "dd00",
        "dd01",
        "5d05",
        "5c03",
        "5c020000",
        "4c01",
        "4c0200",
        "4d000000000018",
        "2c03",
        "2c020000",
        "2f070f00",
        "2d0000",
        "2e260002",
        "2f006b616c6d616e00696e697469616c5800060000c03f",
        "fc00092c959083c3da41",
        "5d0601772f00773000773100774e00778100",
        "5d060177010077020077030077040077050077060077070077080077090077",
        "5d03010a",
        "5d08010a00",
        "5d0401",
        "5d0201",
        "9d0101",
        "9d02",
        "9d03",
        "9d04",
        "9c0c",
        "dc0101",
        "dc02",
        "dc0001",
        "dc0301",
        "dedeadbeef",
        "ff",
        "f3",
    ] {
        assert_eq!(verdict(hex), Ok(()), "{hex}");
    }
}

#[test]
fn reserved_bits_make_no_difference() {
    assert_eq!(verdict("300000"), Err(Reject::RpytLength));
    assert_eq!(verdict("70070000803f000000400000003f0000b442"), Ok(()));
}

#[test]
fn nan_and_infinity_are_refused_wherever_they_stand() {
    for hex in [
        "3c0000c07f0000a0400000a0413075",
        "7c07000080ff000000400000003f0000b442",
        "7c0b0000a040000040400000807fb88800",
        "6c0000803f000000400000c07f",
        "6d080000803f0000004000004040000000000000000000000000000080ff",
        "8c07000000003f00000000000000c07f",
        "8c07000000003f0000c07f0000000040",
        "8c09000000003f000000c07f000000003f",
        "8c05000100010000c07f",
    ] {
        assert_eq!(verdict(hex), Err(Reject::NotFinite), "{hex}");
    }
}

#[test]
fn memories_are_refused_until_the_drone_has_announced_them() {
    let mut gate = Gate::new();
    let info = packet("4c0201");
    assert_eq!(gate.admit(&info), Err(Reject::MemoryUnknown));
    gate.observe(&packet("400102"));
    assert!(gate.admit(&info).is_ok());
    gate.observe(&packet("400100"));
    assert_eq!(gate.admit(&info), Err(Reject::MemoryUnknown));
    gate.forget();
    assert_eq!(gate.memories(), None);
}

#[test]
fn every_rule_has_its_own_index_and_words() {
    let mut counts = RejectCounts::default();
    for (index, reject) in Reject::ALL.into_iter().enumerate() {
        assert_eq!(reject.index(), index);
        assert_eq!(reject.to_string(), reject.reason());
        counts.add(reject);
        assert_eq!(counts.get(reject), 1);
    }
    assert_eq!(counts.total(), Reject::ALL.len() as u64);
    assert_eq!(counts.iter().count(), Reject::ALL.len());
}

proptest! {
    #[test]
    fn random_bytes_never_panic_and_are_never_changed(
        bytes in proptest::collection::vec(any::<u8>(), 1..=31),
        memories in any::<u8>(),
    ) {
        let packet = Packet::from_bytes(&bytes).unwrap();
        let mut gate = Gate::new();
        gate.observe(&Packet::from_bytes(&[0x40, 1, memories]).unwrap());
        gate.observe(&packet);
        if let Ok(admitted) = gate.admit(&packet) {
            prop_assert_eq!(admitted.as_bytes(), &bytes[..]);
        }
    }

    #[test]
    fn an_admitted_setpoint_cut_or_extended_by_a_byte_is_refused(
        kind in prop_oneof![0u8..=2, 4u8..=11],
        extra in any::<u8>(),
    ) {
        let length = match kind { 0 => 0, 6 => 28, 11 => 15, _ => 16 };
        let mut bytes = vec![0x7c, kind];
        bytes.resize(2 + length, 0);
        let exact = Packet::from_bytes(&bytes).unwrap();
        prop_assert!(Gate::new().admit(&exact).is_ok());
        let shorter = Packet::from_bytes(&bytes[..bytes.len() - 1]).unwrap();
        prop_assert!(Gate::new().admit(&shorter).is_err());
        bytes.push(extra);
        let longer = Packet::from_bytes(&bytes).unwrap();
        prop_assert!(Gate::new().admit(&longer).is_err());
    }
}

#[test]
fn a_parameter_takes_a_value_of_its_own_size_only_once_the_drone_has_told_it() {
    let mut gate = Gate::new();
    let admits = |gate: &Gate, hex: &str| gate.admit(&packet(hex)).is_ok();
    assert!(admits(&gate, "2e050000") && admits(&gate, "2e050000000000"));
    // Table items: id 5 is a float, id 6 an u8; the value of id 7 has two bytes.
    gate.observe(&packet("2c02050006610062"));
    gate.observe(&packet("2c02060008610063"));
    gate.observe(&packet("2d0700000102"));
    for (write, fits) in [
        ("2e050000", false),
        ("22050000", false),
        ("2e050000000000", true),
        ("2e060001", true),
        ("2e06000100", false),
        ("2e07000100", true),
        ("2e070001", false),
        ("2e080001", true),
    ] {
        assert_eq!(admits(&gate, write), fits, "{write}");
    }
    gate.forget();
    assert!(admits(&gate, "2e050000"));
}

#[test]
fn invented_parameter_ids_cost_no_memory() {
    let mut gate = Gate::new();
    gate.observe(&packet("2d ffff 00 01".replace(' ', "").as_str()));
    assert_eq!(gate, Gate::new());
}
