//! Guards against frames that depend on how the input was split into chunks.

use interlingua::framing::{Body, Frame, Framing, Limits, Lines, Objects, Sse};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support;

const SAMPLES: [&[u8]; 7] = [
    "{\"text\":\"héllo — 😀\"}\n{\"é\":\"\u{2028}\u{2029}\"}\r\n\r\n  {}\r".as_bytes(),
    b"{\"a\":\"\xff\xfe\"}\n{\"b\":\"\xe2\x82\"}\n\xf0\x9f\x98\n{}\n",
    "\u{feff}{\"a\":1}\n\u{1b}[31mred {\"b\":2}{\"c\":{\n\"d\":[\n{}]}} tail\n{".as_bytes(),
    "\u{feff}event: é\r\ndata: {\"a\":\r\ndata: \"😀\"}\r\r\n\ndata: [DONE]\n\ndata: \u{2028}".as_bytes(),
    b"data: \xff\n: \xff\nevent: \xff\n\ndata\n\n\xef\xbbdata: 1\n\n",
    b"{\"a\":\n{\"b\":2}\n{\"c\":\"\\u00e9\\\"\",\"d\":-1.5e+3,\"e\":[true,null]}\n{\"x\":oops {}\n",
    b"{{{\"}\n\"{\"a\":tru{}\n[{},\n{}]\n{\"a\":[\n{},\n{},oops\n{\"long\":\"0123456789012345678901234567890\"}\n",
];

type Make = fn(Limits) -> Box<dyn Framing>;

const FRAMINGS: [Make; 3] = [
    |limits| Box::new(Lines::new(limits)),
    |limits| Box::new(Sse::new(limits)),
    |limits| Box::new(Objects::new(limits)),
];

fn limits() -> impl Iterator<Item = Limits> {
    [0, 1, 7, 20, 1000].into_iter().map(|frame| Limits { frame })
}

/// All observable properties of the frames of `chunks`.
fn frames<'c>(
    make: Make,
    limits: Limits,
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> Vec<String> {
    let mut seen = Vec::new();
    let mut framing = make(limits);
    for chunk in chunks {
        framing.push(chunk, &mut |frame| seen.push(format!("{frame:?}")));
    }
    framing.finish(&mut |frame| seen.push(format!("{frame:?}")));
    seen
}

#[test]
fn every_split_of_every_sample_gives_the_same_frames() {
    for make in FRAMINGS {
        for limits in limits() {
            for sample in SAMPLES {
                let at_once = frames(make, limits, [sample]);
                assert_eq!(frames(make, limits, sample.chunks(1)), at_once);
                for split in 0..=sample.len() {
                    let (first, second) = sample.split_at(split);
                    assert_eq!(frames(make, limits, [first, second]), at_once, "at {split}");
                }
            }
        }
    }
}

#[test]
fn a_character_cut_in_two_is_not_replaced() {
    let input = "{\"a\":\"😀\"}\n".as_bytes();
    for make in [FRAMINGS[0], FRAMINGS[2]] {
        for split in 0..=input.len() {
            let (first, second) = input.split_at(split);
            let seen = frames(make, Limits::default(), [first, second]);
            assert_eq!(seen.len(), 1);
            assert!(seen[0].contains("😀") && seen[0].contains("replaced: false"), "{seen:?}");
        }
    }
}

/// Input made of the elements that matter to framing, in any order.
fn input() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: [&[u8]; 36] = [
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b"\\",
        b":",
        b",",
        b"\n",
        b"\n",
        b"\r",
        b"\r\n",
        b" ",
        b"1",
        b"-",
        b".5",
        b"e",
        b"true",
        b"nul",
        b"\"a\":",
        b"{\"a\":",
        b"{\"b\":2}",
        b"{}",
        b"\n{\"c\":3}\n",
        b"\\u00e9",
        b"data: ",
        b"data",
        b"event: x\n",
        b": ",
        b"\n\n",
        b"[DONE]",
        b"\xff",
        b"\xe2\x82",
        "😀".as_bytes(),
        "\u{2028}".as_bytes(),
        "\u{feff}".as_bytes(),
    ];
    vec(prop::sample::select(WORDS.to_vec()), 0..40).prop_map(|words| words.concat())
}

/// Cuts `input` at the given positions, taken modulo its length.
fn split_at<'c>(input: &'c [u8], places: &[usize]) -> Vec<&'c [u8]> {
    let mut places: Vec<_> = places.iter().map(|place| place % (input.len() + 1)).collect();
    places.sort_unstable();
    let mut rest = input;
    let mut chunks = Vec::new();
    for place in places {
        let (chunk, after) = rest.split_at(place - (input.len() - rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    chunks.push(rest);
    chunks
}

/// The ranges that the frames cover, which must be in order and disjoint.
fn covered(make: Make, input: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut covered: Vec<std::ops::Range<usize>> = Vec::new();
    let mut framing = make(Limits::default());
    let mut sink = |frame: Frame<'_>| {
        let bytes = frame.bytes.start as usize..frame.bytes.end as usize;
        assert!(covered.last().is_none_or(|last| last.end <= bytes.start));
        let line = 1 + input.iter().take(bytes.start).filter(|byte| **byte == b'\n').count() as u64;
        assert_eq!(frame.line, line);
        if let Body::Text(text) = frame.body {
            assert!(text.replaced || text.noise.len() + text.text.len() <= bytes.len());
        }
        covered.push(bytes);
    };
    framing.push(input, &mut sink);
    framing.finish(&mut sink);
    covered
}

proptest! {
    #![proptest_config(support::cases(2000))]

    #[test]
    fn any_split_gives_the_same_frames(
        input in input(),
        places in vec(any::<usize>(), 0..6),
        limit in prop_oneof![0..30_usize, Just(1000)],
    ) {
        let limits = Limits { frame: limit };
        for make in FRAMINGS {
            let at_once = frames(make, limits, [&input[..]]);
            prop_assert_eq!(&frames(make, limits, split_at(&input, &places)), &at_once);
            prop_assert_eq!(&frames(make, limits, input.chunks(1)), &at_once);
        }
    }

    #[test]
    fn any_bytes_give_the_same_frames(
        input in vec(any::<u8>(), 0..60),
        places in vec(any::<usize>(), 0..4),
    ) {
        for make in FRAMINGS {
            let at_once = frames(make, Limits::default(), [&input[..]]);
            let split = frames(make, Limits::default(), split_at(&input, &places));
            prop_assert_eq!(split, at_once);
        }
    }

    #[test]
    fn lines_and_objects_lose_nothing_but_separators(input in input()) {
        for (make, separators) in [(FRAMINGS[0], &b""[..]), (FRAMINGS[2], &b",[]"[..])] {
            let mut from = 0;
            let end = input.len()..input.len();
            for bytes in covered(make, &input).into_iter().chain([end]) {
                let nothing = |byte: &u8| byte.is_ascii_whitespace() || separators.contains(byte);
                prop_assert!(input[from..bytes.start].iter().all(nothing));
                from = bytes.end;
            }
        }
    }

    #[test]
    fn a_record_after_any_line_is_found(input in input()) {
        // A line feed in the input may close what the input opened around the record; a single line
        // cannot.
        let line: Vec<u8> = input.into_iter().filter(|byte| *byte != b'\n').collect();
        let record = "{\"type\":\"record\"}";
        let complete = [&line[..], b"\n", record.as_bytes(), b"\n"].concat();
        for make in [FRAMINGS[0], FRAMINGS[2]] {
            let mut found = false;
            let mut framing = make(Limits::default());
            let mut sink = |frame: Frame<'_>| {
                found |= matches!(frame.body, Body::Text(text) if text.text == record);
            };
            framing.push(&complete, &mut sink);
            framing.finish(&mut sink);
            prop_assert!(found);
        }
    }
}
