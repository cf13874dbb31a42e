//! A response that arrives in other pieces, or in the form of another server, has the same text and
//! calls, and leads to the same next request.

use fake_model::{CallArguments, CallIndex, ChatForm, Reply};
use interlingua_agents::api::ApiKind;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Value, json};

use super::{APIS, Bench, of_kind, text};

/// How a response is sent.
#[derive(Debug, Clone)]
struct Pieces {
    text: Vec<String>,
    /// Where the arguments of each call are split.
    arguments: [Vec<usize>; 2],
    form: ChatForm,
}

const TEXT: &str = "Ich prüfe »beide« 🦀.";

impl Pieces {
    /// The usual form, with as few pieces as possible.
    fn whole() -> Self {
        let arguments = [vec![0], vec![0]];
        Self { text: vec![TEXT.to_owned()], arguments, form: ChatForm::default() }
    }

    fn reply(&self) -> Reply {
        let reasoning = Reply::new().then_reasoning("Hm.");
        let reply = self.text.iter().fold(reasoning, |reply, piece| reply.then_text(piece));
        let [first, second] = &self.arguments;
        reply
            .then_call("Teleport", json!({"to": "Mars 🪐", "with": ["tea", {"sugar": null}]}))
            .split_arguments(first)
            .then_call("Teleport", json!({"to": "\"home\"\n", "speed": 1.5}))
            .split_arguments(second)
            .chat(self.form.clone())
    }
}

fn pieces() -> impl Strategy<Value = Pieces> {
    let positions = || prop::collection::vec(0..60_usize, 0..6).prop_map(sorted);
    let index = prop::sample::select(vec![CallIndex::Counted, CallIndex::Zero, CallIndex::Missing]);
    let arguments = prop::sample::select(vec![CallArguments::Text, CallArguments::Object]);
    let form = (index, arguments, any::<[bool; 4]>()).prop_map(|(index, arguments, flags)| {
        let [repeated_ids, whole_calls, without_done, usage_in_every_chunk] = flags;
        ChatForm {
            index,
            arguments,
            repeated_ids,
            whole_calls,
            without_done,
            usage_in_every_chunk,
            ..ChatForm::default()
        }
    });
    (positions(), positions(), positions(), form).prop_map(|(text, first, second, form)| Pieces {
        text: split(TEXT, &text),
        arguments: [first, second],
        form,
    })
}

fn sorted(mut positions: Vec<usize>) -> Vec<usize> {
    positions.sort_unstable();
    positions
}

/// Splits a text into pieces that are not empty.
fn split(text: &str, positions: &[usize]) -> Vec<String> {
    let (mut pieces, mut start) = (Vec::new(), 0);
    for position in positions.iter().copied().chain([text.len()]) {
        let end = text.floor_char_boundary(position.min(text.len()));
        if end > start {
            pieces.push(text[start..end].to_owned());
            start = end;
        }
    }
    pieces
}

/// The text and the calls of a turn, and the history of its second request.
async fn turn(api: ApiKind, pieces: &Pieces) -> (String, Vec<Value>, Value) {
    let bench = Bench::new(api, [pieces.reply(), Reply::text("Done.")]);
    let (ended, events) = bench.run("go").await;
    assert_eq!(ended.code(), 0, "{api:?} {pieces:?}: {events:#?}");
    assert_eq!(bench.model.findings(), [], "{api:?} {pieces:?}");
    let calls = of_kind(&events, "tool_input");
    let calls = calls.iter().map(|it| json!([it["call"], it["name"], it["input"]])).collect();
    let body = &bench.model.main_requests()[1].body;
    let history = ["messages", "input", "contents"].iter().find_map(|name| body.get(name));
    // The system prompt names the folder.
    let history: Vec<_> =
        history.unwrap().as_array().unwrap().iter().filter(|it| it["role"] != "system").collect();
    (text(&events), calls, json!(history))
}

#[test]
fn the_pieces_of_a_response_do_not_matter() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let expected = APIS.map(|api| runtime.block_on(turn(api, &Pieces::whole())));
    for (_, calls, _) in &expected {
        assert_eq!(calls.len(), 2);
    }
    // The same cases in every run.
    let config = Config {
        cases: 24,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&pieces(), |pieces| {
        for (api, expected) in APIS.iter().zip(&expected) {
            let turn = runtime.block_on(turn(*api, &pieces));
            prop_assert_eq!(&turn, expected, "{:?}", api);
        }
        Ok(())
    });
    result.unwrap();
}
