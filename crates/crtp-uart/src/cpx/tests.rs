use proptest::prelude::*;

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

/// Everything the decoder finds, frames as data bytes, tokens as nothing.
fn decode(decoder: &mut Decoder, mut bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut items = Vec::new();
    while let Some(item) = decoder.next(&mut bytes) {
        items.push(match item {
            Item::ClearToSend => None,
            Item::Frame(frame) => Some(frame.data.to_vec()),
        });
    }
    assert!(bytes.is_empty());
    items
}

fn frames(bytes: &[u8]) -> Vec<Vec<u8>> {
    let items = decode(&mut Decoder::new(), bytes);
    items.into_iter().flatten().collect()
}

fn admitted(bytes: &[u8]) -> Admitted {
    let packet = Packet::from_bytes(bytes).unwrap();
    crtp::Gate::new().admit(&packet).unwrap()
}

/// Frames that cflib 0.1.34 wrote to real firmware, and their packets.
const TO_DRONE: [(&str, &str); 6] = [
    ("ff041903fd001c", "fd00"),
    ("ff041903dd003c", "dd00"),
    ("ff0419035d05b9", "5d05"),
    ("ff0419035c03be", "5c03"),
    ("ff0619035c020000bd", "5c020000"),
    (
        "ff1419037c070000803f000000400000003f0000b442bc",
        "7c070000803f000000400000003f0000b442",
    ),
];

/// Frames that real firmware wrote, and their packets.
const TO_HOST: [(&str, &str); 5] = [
    (
        "ff210b03fd4269746372617a65204372617a79666c69650000000000000000000000006e",
        "fd4269746372617a65204372617a79666c6965000000000000000000000000",
    ),
    ("ff080b03dd000700000025", "dd0007000000"),
    ("ff060b035d050000a9", "5d050000"),
    ("ff0c0b0350035101f8d70c1e108055", "50035101f8d70c1e1080"),
    (
        "ff130b03500200000263727470007278526174650089",
        "5002000002637274700072785261746500",
    ),
];

#[test]
fn golden_frames_to_the_drone() {
    for (frame, packet) in TO_DRONE {
        assert_eq!(to_drone(&admitted(&hex(packet)))[..], hex(frame));
        assert_eq!(frames(&hex(frame)), [hex(packet)]);
    }
}

#[test]
fn golden_frames_to_the_host() {
    for (frame, packet) in TO_HOST {
        let bytes = Packet::from_bytes(&hex(packet)).unwrap();
        assert_eq!(to_host(&bytes)[..], hex(frame));
        assert_eq!(frames(&hex(frame)), [hex(packet)]);
    }
}

#[test]
fn golden_system_messages() {
    let use_this_link = System::UseThisLink(true);
    assert_eq!(system(use_this_link)[..], hex("ff0419012101c3"));
    assert_eq!(
        system(System::ClientConnected(true))[..],
        hex("ff0419012001c2")
    );
    for message in [System::UseThisLink(false), System::ClientConnected(false)] {
        assert_eq!(System::parse(&message.bytes()), Some(message));
    }
    assert_eq!(System::parse(&[0x21, 2]), None);
    assert_eq!(System::parse(&[0x21]), None);
}

#[test]
fn header_bits_are_where_firmware_has_them() {
    assert_eq!(Header::HOST_CRTP.bytes(), [0x19, 0x03]);
    assert_eq!(Header::DRONE_CRTP.bytes(), [0x0b, 0x03]);
    let last = Header::parse([0x4b, 0x03]).unwrap();
    assert!(last.last && last.source == Target::STM32 && last.destination == Target::HOST);
    assert_eq!(Header::parse([0x0b, 0x43]), None);
}

/// Report: a checksum that leaves out the start and length bytes.
#[test]
fn checksum_covers_start_and_length() {
    let frame = hex("ff0b0b035201f0ffff0000803fe0");
    assert_eq!(frames(&frame), [frame[4..frame.len() - 1].to_vec()]);
    for bit in 0..frame.len() * 8 {
        let mut damaged = frame.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let mut decoder = Decoder::new();
        let mut items = decode(&mut decoder, &damaged);
        decoder.give_up();
        while decoder.is_partial() {
            items.extend(decode(&mut decoder, &[]));
            decoder.give_up();
        }
        let found: Vec<_> = items.into_iter().flatten().collect();
        assert!(found.is_empty(), "bit {bit}: {found:02x?}");
    }
}

#[test]
fn tokens_between_frames_and_start_bytes_inside_them() {
    let mut bytes = hex("ff00ff00");
    bytes.extend(hex("ff080b03dd000700000025"));
    bytes.extend(to_host(&Packet::from_bytes(&[0xff; 31]).unwrap()));
    bytes.extend(hex("ff00"));
    let items = decode(&mut Decoder::new(), &bytes);
    let data = Some(hex("dd0007000000"));
    assert_eq!(items, [None, None, data, Some(vec![0xff; 31]), None]);
}

#[test]
fn a_false_start_costs_one_byte_only() {
    let mut bytes = hex("ff05");
    bytes.extend(hex("ff060b035d050000a9"));
    let mut decoder = Decoder::new();
    assert_eq!(
        decode(&mut decoder, &bytes),
        [Some(hex("5d050000"))],
        "the frame begins inside what the false start took for its data"
    );
    assert_eq!(decoder.stats().bad_xor, 1);
    assert_eq!(decoder.stats().resync_bytes, 2);
}

#[test]
fn a_start_byte_before_a_frame_is_skipped() {
    let mut decoder = Decoder::new();
    let items = decode(&mut decoder, &hex("ffff060b035d050000a9"));
    assert_eq!(items, [Some(hex("5d050000"))]);
    assert_eq!(decoder.stats().oversize, 1);
}

#[test]
fn lengths_of_100_and_101() {
    let mut longest = vec![START, 100, 0x0b, 0x05];
    longest.extend([0xa5; 98]);
    longest.push(checksum(&longest));
    assert_eq!(frames(&longest), [vec![0xa5; 98]]);
    let mut decoder = Decoder::new();
    assert!(decode(&mut decoder, &[START, 101, 0x0b, 0x05]).is_empty());
    assert_eq!(decoder.stats().oversize, 1);
    assert!(!decoder.is_partial());
}

#[test]
fn a_frame_without_routing_bytes_and_one_of_another_version_are_no_frames() {
    let mut decoder = Decoder::new();
    assert!(decode(&mut decoder, &hex("ff0155ab")).is_empty());
    assert_eq!(decoder.stats().undersize, 1);
    let mut newer = hex("ff040b43dd00");
    newer.push(checksum(&newer));
    assert!(decode(&mut decoder, &newer).is_empty());
    assert_eq!(decoder.stats().bad_version, 1);
    assert_eq!(decoder.stats().frames, 0);
}

#[test]
fn a_frame_cut_off_gives_way_to_the_next() {
    let mut decoder = Decoder::new();
    assert!(decode(&mut decoder, &hex("ff64ff080b03dd000700000025")).is_empty());
    assert!(decoder.is_partial());
    decoder.give_up();
    assert_eq!(decode(&mut decoder, &[]), [Some(hex("dd0007000000"))]);
    assert!(!decoder.is_partial());
    assert_eq!(decoder.stats().cut_off, 1);
}

fn packet_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..=31)
}

proptest! {
    #[test]
    fn frames_survive_any_cut(packets in prop::collection::vec(packet_bytes(), 1..8), cut in 1_usize..40) {
        let mut bytes = Vec::new();
        for packet in &packets {
            bytes.extend(CLEAR_TO_SEND);
            bytes.extend(to_host(&Packet::from_bytes(packet).unwrap()));
        }
        let mut decoder = Decoder::new();
        let items: Vec<_> = bytes.chunks(cut).flat_map(|piece| decode(&mut decoder, piece)).collect();
        let expected: Vec<_> = packets.into_iter().flat_map(|packet| [None, Some(packet)]).collect();
        prop_assert_eq!(items, expected);
        prop_assert_eq!(decoder.stats().damaged(), 0);
        prop_assert_eq!(decoder.stats().resync_bytes, 0);
    }

    #[test]
    fn noise_makes_no_panic_and_every_byte_is_accounted_for(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let mut decoder = Decoder::new();
        let mut taken = 0;
        for item in decode(&mut decoder, &bytes) {
            taken += item.map_or(2, |data| data.len() + 5);
        }
        while decoder.is_partial() {
            decoder.give_up();
            for item in decode(&mut decoder, &[]) {
                taken += item.map_or(2, |data| data.len() + 5);
            }
        }
        let stats = decoder.stats();
        if stats.bad_version == 0 {
            prop_assert_eq!(taken as u64 + stats.resync_bytes, bytes.len() as u64);
        }
    }

    #[test]
    fn frames_behind_noise_are_found(noise in prop::collection::vec(any::<u8>(), 0..300), packet in packet_bytes()) {
        let mut bytes = noise;
        // More than the longest false start can take for its data.
        bytes.extend([0; 103]);
        bytes.extend(to_host(&Packet::from_bytes(&packet).unwrap()));
        let found = frames(&bytes);
        prop_assert_eq!(found.last(), Some(&packet));
    }
}
