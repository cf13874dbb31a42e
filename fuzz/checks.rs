//! Properties that must hold for any bytes: shared by the fuzz targets and by the test that runs
//! their corpora.
#![allow(dead_code, clippy::expect_used)]

use interlingua::check::Checker;
use interlingua::dialect::{self, Dialect};
use interlingua::framing::{Body, Frame, Framing, FramingKind, Limits};
use interlingua::{Exit, Options, Translator};

/// Frames do not depend on how the bytes are split, are in order, and never exceed the limit.
pub(crate) fn framing(data: &[u8]) {
    let limits = Limits { frame: 1 << 12 };
    let kinds = [
        FramingKind::Lines,
        FramingKind::Sse,
        FramingKind::LinesOrSse,
        FramingKind::Objects,
        FramingKind::ContentLength,
        FramingKind::SseOrObjects,
    ];
    for kind in kinds {
        let whole = frames(kind.at_start(limits), [data]);
        let size = data.first().map_or(1, |byte| usize::from(*byte % 13) + 1);
        assert_eq!(whole, frames(kind.at_start(limits), data.chunks(size)));
        for frame in &whole {
            assert!(frame.end <= data.len() as u64 && frame.start <= frame.end, "{frame:?}");
            assert!(frame.text.len() <= 3 * limits.frame + 3, "{frame:?}");
        }
    }
}

#[derive(Debug, PartialEq)]
struct Seen {
    line: u64,
    start: u64,
    end: u64,
    text: String,
}

fn frames<'c>(
    mut framing: Box<dyn Framing + Send>,
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut take = |frame: Frame<'_>| {
        let text = match &frame.body {
            Body::Text(text) => format!("{}{}", text.noise, text.text),
            other => format!("{other:?}"),
        };
        seen.push(Seen { line: frame.line, start: frame.bytes.start, end: frame.bytes.end, text });
    };
    for chunk in chunks {
        framing.push(chunk, &mut take);
    }
    framing.finish(&mut take);
    seen
}

/// A decoder accepts any input, and the output of every writer keeps the rules of its dialect.
pub(crate) fn decoder(name: &str, data: &[u8]) {
    let from = dialect::find(name).expect("the name of a dialect");
    for to in dialect::ALL.iter().copied().filter(|dialect| dialect.encoder.is_some()) {
        let written = translate(from, to, [data]);
        if to.name == "events" {
            let size = data.first().map_or(1, |byte| usize::from(*byte % 13) + 1);
            assert_eq!(written, translate(from, to, data.chunks(size)));
        }
        // Records that are passed through unchanged may break the rules of their dialect.
        if to.rules.is_some() && to.name != from.name {
            let mut checker = Checker::new(to, Limits::default());
            checker.push(&written);
            let findings = checker.finish(&Exit::default());
            assert!(findings.is_empty(), "{name} -> {}: {findings:#?}", to.name);
        }
    }
}

fn translate<'c>(
    from: &'static Dialect,
    to: &'static Dialect,
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> Vec<u8> {
    let Ok(mut translator) = Translator::new(from.into(), to, Options::default()) else {
        return Vec::new();
    };
    let mut written = Vec::new();
    for chunk in chunks {
        written.extend_from_slice(translator.push(chunk, None));
    }
    written.extend_from_slice(&translator.finish(&Exit::default(), None).bytes);
    written
}
