use super::*;
use proptest::prelude::*;

fn part(ordered: bool, fragment: Option<Fragment>, data: &[u8]) -> Part<'_> {
    Part {
        stream: if ordered {
            Stream::Ordered(3)
        } else {
            Stream::Latest(3)
        },
        seq: Seq::new(0x01020304),
        order: ordered.then_some(Order {
            back: 2,
            wait: Span::FOREVER,
        }),
        age: Span::from_wire(5),
        life: Span::from_wire(0x0700),
        attempt: 1,
        period: None,
        fragment,
        data,
    }
}

fn emitted(part: &Part<'_>) -> Vec<u8> {
    let mut buffer = [0; 2000];
    let mut writer = Writer::new(&mut buffer);
    part.emit(&mut writer).unwrap();
    let len = writer.len();
    assert_eq!(len, part.wire_len());
    buffer[..len].to_vec()
}

#[test]
fn ordered_message_has_this_layout() {
    let bytes = emitted(&part(true, None, b"hi"));
    let golden = [
        0x11, 3, 1, 2, 3, 4, 0, 2, 0xff, 0xff, 0, 5, 7, 0, 1, 0, 2, b'h', b'i',
    ];
    assert_eq!(bytes, golden);
}

#[test]
fn parts_come_back_and_every_cut_is_an_error() {
    let fragment = Fragment {
        index: 1,
        size: 4,
        total: 7,
    };
    for part in [
        part(false, None, b"x"),
        part(true, None, b""),
        part(true, Some(fragment), b"abc"),
        Part {
            period: Some(Span::from_wire(77)),
            ..part(true, None, b"abc")
        },
    ] {
        let bytes = emitted(&part);
        assert_eq!(
            next_frame(&mut Reader::new(&bytes)),
            Some(Ok(Frame::Part(part)))
        );
        for cut in 1..bytes.len() {
            assert!(matches!(
                next_frame(&mut Reader::new(&bytes[..cut])),
                Some(Err(_))
            ));
        }
    }
}

#[test]
fn fragments_of_the_wrong_length_or_place_are_refused() {
    let right = Fragment {
        index: 1,
        size: 4,
        total: 7,
    };
    assert_eq!((right.count(), right.expected_len()), (2, 3));
    for (fragment, data) in [
        (right, b"ab".as_slice()),
        (Fragment { index: 2, ..right }, b""),
        (Fragment { size: 0, ..right }, b""),
    ] {
        let bytes = emitted(&part(false, Some(fragment), data));
        assert!(matches!(next_frame(&mut Reader::new(&bytes)), Some(Err(_))));
    }
}

#[test]
fn frame_streams_have_parity_symbols_and_a_limit() {
    let symbol = |index, size, total, data: &[u8]| {
        let fragment = Fragment { index, size, total };
        let part = Part {
            stream: Stream::Frame(3),
            ..part(true, Some(fragment), data)
        };
        let bytes = emitted(&part);
        assert_eq!(bytes[0], 0x1b);
        next_frame(&mut Reader::new(&bytes)).unwrap().is_ok()
    };
    assert!(symbol(0, 64, 100, &[0; 64]) && symbol(1, 64, 100, &[0; 36]));
    assert!(symbol(2, 64, 100, &[0; 64]) && symbol(6, 64, 100, &[0; 64]));
    assert!(!symbol(7, 64, 100, &[0; 64]) && !symbol(2, 64, 100, &[0; 36]));
    assert!(!symbol(0, 1, 5000, &[0]));
}

#[test]
fn acknowledgement_comes_back_and_too_long_a_history_is_refused() {
    let ack = Ack {
        largest: 9,
        hold: Span::from_wire(100),
        history: [0xff, 1].into_iter().collect(),
    };
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    ack.emit(&mut writer).unwrap();
    assert_eq!(writer.len(), ack.wire_len());
    assert_eq!(buffer[..10], [1, 0, 0, 0, 9, 0, 100, 2, 0xff, 1]);
    assert_eq!(
        next_frame(&mut Reader::new(&buffer[..10])),
        Some(Ok(Frame::Ack(ack)))
    );
    let mut long = [0; 64];
    long[0] = 1;
    long[7] = 33;
    assert!(matches!(next_frame(&mut Reader::new(&long)), Some(Err(_))));
}

#[test]
fn challenge_and_answer_come_back() {
    let mut buffer = [0; 18];
    let mut writer = Writer::new(&mut buffer);
    emit_challenge(0x0102_0304_0506_0708, &mut writer).unwrap();
    emit_answer(9, &mut writer).unwrap();
    assert_eq!(emit_answer(9, &mut writer), None);
    assert_eq!(buffer[..9], [7, 1, 2, 3, 4, 5, 6, 7, 8]);
    let mut reader = Reader::new(&buffer);
    let challenge = Frame::Challenge(0x0102_0304_0506_0708);
    assert_eq!(next_frame(&mut reader), Some(Ok(challenge)));
    assert_eq!(next_frame(&mut reader), Some(Ok(Frame::Answer(9))));
    assert!(matches!(
        next_frame(&mut Reader::new(&buffer[..8])),
        Some(Err(_))
    ));
}

#[test]
fn pace_comes_back() {
    let mut buffer = [0; 3];
    emit_pace(Span::from_wire(0x1234), &mut Writer::new(&mut buffer)).unwrap();
    assert_eq!(buffer, [5, 0x12, 0x34]);
    let read = |bytes: &[u8]| next_frame(&mut Reader::new(bytes)).map(|frame| frame.is_ok());
    assert_eq!(read(&buffer), Some(true));
    assert_eq!(read(&buffer[..2]), Some(false));
    assert_eq!(
        emit_pace(Span::ZERO, &mut Writer::new(&mut buffer[..2])),
        None
    );
}

#[test]
fn request_comes_back_and_names_its_messages() {
    let nack = Nack {
        stream: Stream::Ordered(3),
        first: Seq::new(u32::MAX),
        more: 0b101,
    };
    let mut buffer = [0; 9];
    nack.emit(&mut Writer::new(&mut buffer)).unwrap();
    assert_eq!(buffer, [4, 1, 3, 0xff, 0xff, 0xff, 0xff, 0, 0b101]);
    assert_eq!(
        next_frame(&mut Reader::new(&buffer)),
        Some(Ok(Frame::Nack(nack)))
    );
    let named: Vec<u32> = nack.seqs().map(Seq::get).collect();
    assert_eq!(named, [u32::MAX, 0, 2]);
    for cut in 1..9 {
        assert!(matches!(
            next_frame(&mut Reader::new(&buffer[..cut])),
            Some(Err(_))
        ));
    }
}

#[test]
fn nothing_is_written_where_there_is_no_room() {
    let mut buffer = [0; 10];
    let mut writer = Writer::new(&mut buffer);
    assert_eq!(part(false, None, b"x").emit(&mut writer), None);
    assert!(writer.is_empty());
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes: Vec<u8>) {
        let mut reader = Reader::new(&bytes);
        while let Some(Ok(_)) = next_frame(&mut reader) {}
    }
}
