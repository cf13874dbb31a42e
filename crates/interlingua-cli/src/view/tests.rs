//! Feeds whole sessions to the view, and looks at the screen of a terminal emulator.
//!
//! `UPDATE_SCREENS=1 cargo test --package interlingua-cli view` writes the files in
//! `tests/screens`. They are what users see: look at them before you commit them.

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use interlingua::event::{
    BlockDelta, BlockEnded, BlockStarted, Data, Event, FileChange, FilesChanged, Log, Notice,
    Outcome, PlanItem, PlanUpdated, Retry, SessionEnded, SessionStarted, ToolEnded, ToolStarted,
    ToolStatus, TurnEnded, TurnStarted, UserMessage,
};
use interlingua::json::{Json, Text};
use interlingua::{Entry, EntryRef, Exit, Origin, ReadOptions, Reader, Source};
use interlingua_agents::permission::is_hidden;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::{Terminal, View, width};

mod pictures;

const TERMINAL: Terminal =
    Terminal { width: 80, height: 24, color: true, live: true, verbose: false };

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The entries of a recorded session.
fn entries(path: &str) -> Vec<Entry> {
    let input = std::fs::read(folder().join(path)).unwrap();
    let mut entries = Vec::new();
    let mut keep = |entry: EntryRef<'_>| entries.push(entry.to_owned());
    let mut reader = Reader::new(Source::Recognise, ReadOptions::default()).unwrap();
    reader.push(&input, None, &mut keep).unwrap();
    reader.finish(&Exit::default(), None, &mut keep).unwrap();
    entries
}

/// What a view writes for entries.
fn written(entries: &[Entry], terminal: Terminal) -> Vec<u8> {
    let (mut view, mut out) = (View::new(terminal), Vec::new());
    let now = Instant::now();
    entries.iter().for_each(|entry| view.entry(entry.borrowed(), now, &mut out));
    view.finish(&mut out);
    out
}

/// The rows that scrolled off the screen of a terminal, and those that are on it.
fn screen(bytes: &[u8], width: u16, height: u16) -> Vec<String> {
    let size = |number| NonZeroU16::new(number).unwrap();
    let mut parser = vt100::Parser::new(size(height), size(width), 100_000);
    parser.process(bytes);
    let mut rows = Vec::new();
    let screen = parser.screen_mut();
    for above in (1..=screen.scrollback_len()).rev() {
        screen.set_scrollback(above);
        rows.extend(screen.rows(0, width).next());
    }
    screen.set_scrollback(0);
    rows.extend(screen.rows(0, width));
    let mut rows: Vec<String> = rows.iter().map(|row| row.trim_end().to_owned()).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

fn shown(entries: &[Entry], terminal: Terminal) -> Vec<String> {
    screen(&written(entries, terminal), terminal.width, terminal.height)
}

#[test]
fn advice_follows_the_turn_that_failed() {
    let (mut view, mut out) = (View::new(TERMINAL), Vec::new());
    for entry in entries("../../transcripts/claude/auth-missing/input.jsonl") {
        view.entry(entry.borrowed(), Instant::now(), &mut out);
        if matches!(entry.event.data, Data::TurnEnded(_)) {
            view.advise("run `claude auth login`", Instant::now(), &mut out);
        }
    }
    view.finish(&mut out);
    let rows = screen(&out, 80, 24);
    assert_eq!(rows.last().map(String::as_str), Some("! run `claude auth login`"), "{rows:?}");
}

/// The sessions whose screens are compared. All were recorded with real agents and a scripted model,
/// the first one by `scripts/record-session`, to contain everything at once.
const SESSIONS: &[(&str, &str)] = &[
    ("fix-a-test", "tests/sessions/fix-a-test.jsonl"),
    ("parallel-tools", "../../transcripts/codex/tool-parallel/input.jsonl"),
    ("edits", "../../transcripts/codex-app-server/tool-multi/input.jsonl"),
    ("claude-edits", "../../transcripts/claude/tool-multi/input.jsonl"),
    ("failed-command", "../../transcripts/codex-app-server/tool-error/input.jsonl"),
    ("plan", "../../transcripts/acp/opencode-todos/input.jsonl"),
    ("error", "../../transcripts/claude/err500/input.jsonl"),
    ("interrupted", "../../transcripts/claude/interrupt-control/input.jsonl"),
    ("denied", "../../transcripts/acp/copilot-tool-shell-reject/input.jsonl"),
    ("sub-agent", "../../transcripts/claude/subagent/input.jsonl"),
    ("replayed", "../../transcripts/acp/gemini-load/input.jsonl"),
    ("reasoning", "../../transcripts/codex-app-server/reasoning/input.jsonl"),
    ("withdrawn", "../../transcripts/codex-app-server/cut-then-ok/input.jsonl"),
];

fn compare(name: &str, actual: &[String]) {
    let path: PathBuf = folder().join("tests/screens").join(format!("{name}.txt"));
    let actual = actual.join("\n") + "\n";
    if std::env::var_os("UPDATE_SCREENS").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{name} has another screen; see view/tests.rs");
}

#[test]
fn sessions_look_as_reviewed() {
    for (name, path) in SESSIONS {
        let entries = entries(path);
        for width in [80, 200] {
            let terminal = Terminal { width, ..TERMINAL };
            compare(&format!("{name}-{width}"), &shown(&entries, terminal));
        }
    }
    let verbose = Terminal { verbose: true, ..TERMINAL };
    compare("fix-a-test-verbose", &shown(&entries("tests/sessions/fix-a-test.jsonl"), verbose));
}

/// A row that wraps would not be where it is expected when it is redrawn.
#[test]
fn no_row_is_wider_than_the_terminal() {
    let transcripts = folder().join("../../transcripts");
    let mut read = 0;
    for agent in std::fs::read_dir(transcripts).unwrap() {
        let Ok(cases) = std::fs::read_dir(agent.unwrap().path()) else { continue };
        for case in cases {
            let input = case.unwrap().path().join("input.jsonl");
            let Some(path) = input.to_str().filter(|_| input.exists()) else { continue };
            read += 1;
            let entries = entries(path);
            for width in [40, 80] {
                let terminal = Terminal { width, live: false, ..TERMINAL };
                let text = String::from_utf8(written(&entries, terminal)).unwrap();
                let wide = text.lines().find(|line| width::of(line) >= usize::from(width));
                assert_eq!(wide, None, "{path}, {width}");
            }
        }
    }
    assert!(read > 200);
}

/// A terminal that cannot move its cursor shows the same lines, and no escape sequences.
#[test]
fn a_dumb_terminal_shows_the_same() {
    for (_, path) in SESSIONS {
        let entries = entries(path);
        let bytes = written(&entries, Terminal { live: false, ..TERMINAL });
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains(['\u{1b}', '\r']), "{path}");
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert_eq!(lines, shown(&entries, TERMINAL), "{path}");
    }
}

/// Without colours, bold and dim are left.
#[test]
fn no_colours_are_used_if_they_are_not_wanted() {
    let entries = entries("tests/sessions/fix-a-test.jsonl");
    let text = String::from_utf8(written(&entries, Terminal { color: false, ..TERMINAL })).unwrap();
    assert!(text.contains("\u{1b}[1m"));
    let colours = |begin: char| (31..=36).map(move |color| format!("{begin}{color}m"));
    assert_eq!(colours('[').chain(colours(';')).find(|escape| text.contains(escape)), None);
}

/// An event of a stream.
fn entry<'a>(data: impl Into<Data<'a>>) -> Entry {
    let event = Event::new(data).into_owned();
    Entry { sequence: 0, received_at: None, epoch: 0, origin: Origin::default(), event, raw: None }
}

/// A turn in which the model streams these deltas.
fn streamed(deltas: &[&str]) -> Vec<Entry> {
    let delta = |text: &&str| {
        let text = Text::from((*text).to_owned());
        entry(BlockDelta { block: 1, text, ..BlockDelta::default() })
    };
    let start = [
        entry(TurnStarted::default()),
        entry(BlockStarted { block: 1, ..BlockStarted::default() }),
    ];
    let end = [entry(BlockEnded { block: 1, ..BlockEnded::default() })];
    start.into_iter().chain(deltas.iter().map(delta)).chain(end).collect()
}

#[test]
fn a_prompt_is_one_line_in_any_terminal() {
    let text = format!("First {}\nsecond\nthird\n", "word ".repeat(60));
    let message = UserMessage { text: Text::from(text), ..UserMessage::default() };
    let entries = [entry(TurnStarted::default()), entry(message)];
    for (width, height) in [(80, 24), (200, 50)] {
        let rows = shown(&entries, Terminal { width, height, ..TERMINAL });
        let row = match &*rows {
            [row] => row,
            rows => panic!("{rows:?}"),
        };
        assert!(row.starts_with("› First word") && row.ends_with("… +2 lines"), "{row}");
    }
}

/// The cause of a failed turn quotes the last line of standard error.
#[test]
fn the_last_line_of_standard_error_is_shown_once() {
    let cause = Some(Text::plain("the agent exited with code 3; the last error was: no disk"));
    let failed = TurnEnded { cause, outcome: Outcome::Failed, ..TurnEnded::default() };
    let stderr = Some(Text::plain("starting up\nno disk\n"));
    let ended = SessionEnded { exit_code: Some(3), stderr, ..SessionEnded::default() };
    let entries = [entry(TurnStarted::default()), entry(failed), entry(ended)];
    for verbose in [false, true] {
        let all = shown(&entries, Terminal { verbose, ..TERMINAL }).join("\n");
        assert_eq!(all.matches("no disk").count(), 1, "{all}");
        assert_eq!(all.matches("starting up").count(), 1, "{all}");
    }
}

/// The activity is shown at the bottom, below what is streamed, and leaves nothing behind.
#[test]
fn what_is_streamed_is_seen_at_once() {
    let entries = streamed(&["Hello **wor", "ld**.\n\nNext"]);
    let (mut view, mut out) = (View::new(TERMINAL), Vec::new());
    let start = Instant::now();
    let mut screens = Vec::new();
    for entry in &entries {
        view.entry(entry.borrowed(), start, &mut out);
        screens.push(screen(&out, 80, 24).join("\n"));
    }
    let due = view.tick(start + Duration::from_secs(2), &mut out).unwrap();
    assert_eq!(due, start + Duration::from_millis(2040));
    screens.push(screen(&out, 80, 24).join("\n"));
    view.finish(&mut out);
    screens.push(screen(&out, 80, 24).join("\n"));
    let expected = [
        "⠋ Waiting",
        "⠋ Writing",
        "Hello wor\n\n⠋ Writing",
        "Hello world.\n\nNext\n\n⠋ Writing",
        "Hello world.\n\nNext\n\n⠋ Working",
        "Hello world.\n\nNext\n\n⠦ Working · 2 s",
        "Hello world.\n\nNext",
    ];
    assert_eq!(screens, expected);
}

#[test]
fn a_pause_removes_what_is_transient() {
    let entries = streamed(&["Hello", " world.\n"]);
    let (mut view, mut out) = (View::new(TERMINAL), Vec::new());
    let now = Instant::now();
    entries.iter().take(3).for_each(|entry| view.entry(entry.borrowed(), now, &mut out));
    view.pause(&mut out);
    out.extend_from_slice(b"Allow? y\r\n");
    assert_eq!(screen(&out, 80, 24), ["Allow? y"]);
    let before = out.len();
    view.entry(entries[3].borrowed(), now, &mut out);
    assert_eq!(view.tick(now, &mut out), None);
    assert_eq!(out.len(), before);
    view.resume();
    view.entry(entries[4].borrowed(), now, &mut out);
    view.finish(&mut out);
    assert_eq!(screen(&out, 80, 24), ["Allow? y", "Hello world."]);
}

/// Terminals wrap rows that do not fit any more.
#[test]
fn a_terminal_may_become_narrower() {
    let entries = streamed(&["one two three four five six seven", " eight"]);
    let (mut view, mut out) = (View::new(TERMINAL), Vec::new());
    let now = Instant::now();
    entries.iter().take(3).for_each(|entry| view.entry(entry.borrowed(), now, &mut out));
    let size = |number| NonZeroU16::new(number).unwrap();
    view.resize(20, 24);
    let mut rest = Vec::new();
    entries.iter().skip(3).for_each(|entry| view.entry(entry.borrowed(), now, &mut rest));
    view.finish(&mut rest);
    // The screen as a terminal shows it after the rows were wrapped.
    let mut parser = vt100::Parser::new(size(24), size(20), 0);
    parser.process(b"one two three four f\r\nive six seven\r\n\r\n\xe2\xa0\x8b Writing");
    parser.process(&rest);
    let rows: Vec<String> = parser.screen().rows(0, 20).map(|row| row.trim_end().into()).collect();
    assert_eq!(
        rows[..3],
        ["one two three four", "five six seven eight", ""].map(str::to_owned)[..]
    );
}

/// What is redrawn is still on the screen, so no row is in the scrollback twice.
#[test]
fn nothing_is_printed_twice() {
    let text: String = (0..400).map(|word| format!("w{word} ")).collect();
    let list: String = (0..100).map(|item| format!("- item{item} of a list\n")).collect();
    let code: String = (0..100).map(|line| format!("line{line}\n")).collect();
    let text = format!("{text}\n\n{list}\n```\n{code}```\n");
    let pieces: Vec<String> =
        text.chars().collect::<Vec<_>>().chunks(7).map(|piece| piece.iter().collect()).collect();
    let deltas: Vec<&str> = pieces.iter().map(String::as_str).collect();
    for (width, height) in [(80, 24), (30, 5), (120, 60)] {
        let terminal = Terminal { width, height, ..TERMINAL };
        let rows = shown(&streamed(&deltas), terminal);
        let all = rows.join(" ");
        let mut words: Vec<&str> = all.split_whitespace().collect();
        for word in ["w0", "w399", "item0", "item99", "line0", "line99"] {
            assert_eq!(words.iter().filter(|it| **it == word).count(), 1, "{word}, {width}");
        }
        let count = words.len();
        words.retain(|word| !matches!(*word, "•" | "of" | "a" | "list"));
        words.sort_unstable();
        words.dedup();
        assert_eq!((count, words.len()), (400 + 500 + 100, 600), "{width}");
        let whole = shown(&streamed(&[&text]), terminal);
        assert_eq!(rows, whole);
    }
}

/// The cost of a delta does not depend on what precedes it.
#[test]
fn the_cost_is_linear() {
    let paragraph = "word ".repeat(50_000);
    let word = "x".repeat(250_000);
    let code = format!("```rust\n{}", "let x = 1; // a line\n".repeat(12_500));
    let table = format!("| a | b |\n|---|---|\n{}", "| one | two |\n".repeat(18_000));
    for text in [paragraph, word, code, table] {
        let time = |length: usize| {
            let text: String = text.chars().take(length).collect();
            let (mut view, mut out) = (View::new(TERMINAL), Vec::new());
            let start = Instant::now();
            let letters: Vec<char> = text.chars().collect();
            let pieces: Vec<String> =
                letters.chunks(500).map(|piece| piece.iter().collect()).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            for entry in streamed(&pieces) {
                out.clear();
                view.entry(entry.borrowed(), start, &mut out);
            }
            start.elapsed()
        };
        time(10_000);
        // Other programs may use the processor, so the best of some rounds counts.
        let best = |length: usize| (0..3).map(|_| time(length)).min().unwrap();
        let (short, long) = (best(50_000), best(250_000));
        // Five times as long; quadratic cost would be twenty-five times as much.
        assert!(long < short * 12 + Duration::from_millis(200), "{short:?} {long:?}");
    }
}

fn any_hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        2 => "[a-z ]{1,12}".prop_map(String::from),
        1 => prop::sample::select(vec![
            "\u{1b}[2J", "\u{1b}]0;title\u{7}", "\u{1b}]8;;http://x\u{1b}\\", "\u{9b}31m", "\r",
            "\u{8}", "\u{202e}", "\u{200b}", "\u{feff}", "\u{0}", "&#27;[2J", "\n", "`", "\t",
            "\u{1b}P", "\u{90}", "\u{85}", "\u{2028}", "\u{e0041}", "\u{1b}", "[31m", "c",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// The control characters that a view writes itself.
fn without_own_sequences(bytes: &[u8]) -> String {
    let mut text = String::from_utf8(bytes.to_vec()).unwrap();
    text = text.replace("\r\n", "").replace("\r\u{1b}[J", "").replace("\u{1b}[A", "");
    let mut rest = String::new();
    let mut parts = text.split("\u{1b}[");
    rest.push_str(parts.next().unwrap());
    for part in parts {
        let end = part.find(|letter: char| !letter.is_ascii_digit() && letter != ';').unwrap();
        assert!(matches!(part.as_bytes()[end], b'm' | b'A'), "{part:?}");
        rest.push_str(&part[end + 1..]);
    }
    rest
}

/// The configuration of property tests: the same cases in every run. With `MORE_CASES=N` there are
/// N times as many, and different ones in every run.
pub(super) fn cases(count: u32) -> ProptestConfig {
    let more: Option<u32> = std::env::var("MORE_CASES").ok().and_then(|times| times.parse().ok());
    ProptestConfig {
        cases: count.saturating_mul(more.unwrap_or(1)),
        rng_seed: if more.is_some() { RngSeed::Random } else { RngSeed::Fixed(7) },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(64))]

    /// Whatever an agent writes, the terminal gets only the sequences of the view.
    #[test]
    fn hostile_text_does_not_control_the_terminal(text in any_hostile_text()) {
        let plain = || Text::from(text.clone());
        let json = || Some(Json::from(&plain()));
        let command = Json::object(|fields| {
            fields.text("command", &plain());
        });
        let started = SessionStarted { agent: Some(plain()), cwd: Some(plain()), ..SessionStarted::default() };
        let call = ToolStarted { call: plain(), name: plain(), input: Some(command), ..ToolStarted::default() };
        let ended = ToolEnded { call: plain(), output: json(), status: ToolStatus::Failed, ..ToolEnded::default() };
        let change = FileChange { path: plain(), diff: json(), ..FileChange::default() };
        let item = PlanItem { text: plain(), ..PlanItem::default() };
        let cause = TurnEnded { cause: Some(plain()), ..TurnEnded::default() };
        let mut entries = streamed(&[&text]);
        entries.splice(0..0, [
            entry(started),
            entry(UserMessage { text: plain(), ..UserMessage::default() }),
        ]);
        entries.extend([
            entry(call),
            entry(ended),
            entry(FilesChanged { changes: vec![change], ..FilesChanged::default() }),
            entry(PlanUpdated { items: vec![item], ..PlanUpdated::default() }),
            entry(Notice { text: plain(), ..Notice::default() }),
            entry(Retry { message: Some(plain()), ..Retry::default() }),
            entry(Log { text: plain(), ..Log::default() }),
            entry(cause),
        ]);
        for verbose in [false, true] {
            let bytes = written(&entries, Terminal { verbose, ..TERMINAL });
            let text = without_own_sequences(&bytes);
            let hidden = |it: char| it.is_control() || is_hidden(it);
            prop_assert_eq!(text.chars().find(|it| hidden(*it)), None);
        }
    }
}
