//! Two turns through a server are the same story that a run tells, in every dialect, for a reader from the
//! start, for one that joins in the middle, and for one that reconnects ten times.

use std::path::Path;

use fake_model::{Reply, Script};
use interlingua::dialect;
use serde_json::{Value, json};

use crate::reader::{Mode, RECONNECTIONS, Reader};
use crate::served::{Agent, Served};
use crate::story::{records, short, story};

const PROMPTS: [&str; 2] = ["Look at it.", "Now explain it."];

fn script() -> Script {
    let words = |text: &str| text.split_inclusive(' ').fold(Reply::new(), Reply::then_text);
    let looks = words("I look at it. ").delay_ms(50);
    Script::new()
        .reply(looks.then_action(fake_model::Action::Shell { command: "echo al''pha".to_owned() }))
        .reply(
            words("It says alpha, and that is all that it says to anyone who looks.").delay_ms(50),
        )
        .reply(words("It is a greek letter — größer als \"β\".").delay_ms(50))
}

pub(crate) fn check(agent: Agent, programs: &Path) {
    let alone = Served::new(agent, programs, script());
    let run = alone.run(PROMPTS);
    let mut served = Served::new(agent, programs, script());
    served.start();
    let id = served.create(PROMPTS[0], "k1", "auto");
    let dialects: Vec<_> =
        dialect::ALL.iter().filter(|it| it.encoder.is_some()).map(|it| it.name).collect();
    let read = |dialect: &str, mode, from| Reader::new(&served.address, &id, dialect, mode, from);
    let from_start: Vec<_> = dialects.iter().map(|dialect| read(dialect, Mode::Sse, 0)).collect();
    let reconnecting: Vec<_> =
        dialects.iter().map(|dialect| read(dialect, Mode::Reconnecting, 0)).collect();
    served.until(&id, |events| turns(events) == 1);
    let first_turns: Vec<_> = dialects.iter().map(|dialect| served.log(&id, dialect)).collect();
    let joining: Vec<_> = dialects
        .iter()
        .zip(&first_turns)
        .map(|(dialect, (_, entries))| read(dialect, Mode::LongPoll, *entries))
        .collect();
    served.prompt(&id, PROMPTS[1], "k2");
    served.until(&id, |events| turns(events) == 2);
    assert_eq!(served.command_of(&id, "c", json!({"type": "close"})).status, 202);
    let readers = from_start.into_iter().zip(reconnecting).zip(joining);
    for (((start, again), joined), (dialect, (first_turn, _))) in
        readers.zip(dialects.iter().zip(first_turns))
    {
        let whole = served.log(&id, dialect).0;
        let again = again.finish();
        let joined = [first_turn, joined.finish().records].concat();
        same(dialect, "from the start", &start.finish().records, &whole);
        same(dialect, "with other connections", &again.records, &whole);
        same(dialect, "from the middle", &joined, &whole);
        assert!(again.connections > RECONNECTIONS, "{dialect}: {} connections", again.connections);
        let expected = records(&alone.translated(&run, dialect), dialect);
        let of_run = story(&expected, &alone.home.path().display().to_string());
        let of_server = story(&whole, &served.home.path().display().to_string());
        let name = agent.title();
        let difference = of_run.iter().zip(&of_server).find(|(run, server)| run != server);
        assert!(
            of_run == of_server,
            "{name} in {dialect}: {difference:#?}\nrun: {:#?}\nserver: {:#?}",
            short(&of_run),
            short(&of_server)
        );
    }
    let findings = served.home.model.findings();
    assert!(findings.is_empty(), "{findings:?}");
    served.kill();
}

fn turns(events: &[Value]) -> usize {
    let ended = |event: &&Value| event["type"] == "turn_ended" && event["replay"] != true;
    events.iter().filter(ended).count()
}

/// A reader has read exactly the log. Text may be cut anywhere.
fn same(dialect: &str, who: &str, read: &[Value], log: &[Value]) {
    let is_same = match dialect {
        "text" => text(read) == text(log),
        _ => read == log,
    };
    assert!(is_same, "{dialect}, {who}: {:#?}\n{:#?}", short(read), short(log));
}

fn text(records: &[Value]) -> String {
    records.iter().filter_map(Value::as_str).collect()
}
