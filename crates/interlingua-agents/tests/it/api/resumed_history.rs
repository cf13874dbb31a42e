//! A resumed session sends exactly the history that the session before would have sent, whatever became
//! of its last turn.

use std::time::Duration;

use fake_model::{Cut, FailureClass, Reply, Stop};
use interlingua_agents::api::ApiKind;
use serde_json::{Value, json};

use super::resume::{earlier, history, last_turn, notices, storing};
use super::{APIS, Bench, of_kind, only};
use crate::support::within;

/// How the first turn goes.
struct Situation {
    name: &'static str,
    replies: fn() -> Vec<Reply>,
    interrupted_at: Option<Moment>,
    outcome: &'static str,
}

/// When a turn is interrupted.
#[derive(Clone, Copy)]
enum Moment {
    /// Once this many events of a kind have arrived.
    Event(usize, &'static str),
    /// Once the model has received this many requests.
    Request(usize),
}

/// A call whose input is held back in the middle.
fn half_a_call(reply: Reply) -> Reply {
    let input = json!({"file_path": "out.txt", "content": "half"});
    reply.then_call("Write", input).gate_inside_call("half")
}

const SITUATIONS: [Situation; 13] = [
    Situation {
        name: "refused",
        replies: || vec![Reply::text("I would ").then_refusal("rather not.")],
        interrupted_at: None,
        outcome: "refused",
    },
    Situation {
        name: "failed in its text",
        replies: || vec![Reply::text("The answer is fo").then_text("rty").cut(Cut::InText)],
        interrupted_at: None,
        outcome: "failed",
    },
    Situation {
        name: "interrupted in its text",
        replies: || vec![Reply::text("One, ").then_gate("counting").then_text("two.")],
        interrupted_at: Some(Moment::Event(1, "block_delta")),
        outcome: "cancelled",
    },
    Situation {
        name: "interrupted before any output",
        replies: || vec![Reply::text("Never.").hold("head")],
        interrupted_at: Some(Moment::Request(1)),
        outcome: "cancelled",
    },
    Situation {
        name: "interrupted in its reasoning",
        replies: || vec![Reply::new().then_reasoning("Hm, ").then_gate("hm").then_text("Yes.")],
        interrupted_at: Some(Moment::Event(1, "block_delta")),
        outcome: "cancelled",
    },
    Situation {
        name: "interrupted in a call",
        replies: || vec![half_a_call(Reply::text("I write."))],
        interrupted_at: Some(Moment::Event(1, "tool_started")),
        outcome: "cancelled",
    },
    Situation {
        name: "interrupted after a whole call, in a call",
        replies: || {
            let read = Reply::text("Both.").then_call("Read", json!({"file_path": "note.txt"}));
            vec![half_a_call(read)]
        },
        interrupted_at: Some(Moment::Event(2, "tool_started")),
        outcome: "cancelled",
    },
    Situation {
        name: "interrupted before a retry",
        replies: || vec![Reply::failure(FailureClass::Overloaded)],
        interrupted_at: Some(Moment::Event(1, "retry")),
        outcome: "cancelled",
    },
    Situation {
        name: "interrupted while a summary is made",
        replies: || {
            let read = |name: &str| Reply::call("Read", json!({"file_path": name}));
            let overflow = Reply::failure(FailureClass::ContextOverflow);
            vec![read("note.txt"), read("list.txt"), overflow, Reply::text("No.").hold("summary")]
        },
        interrupted_at: Some(Moment::Request(4)),
        outcome: "cancelled",
    },
    Situation {
        name: "interrupted while a command runs",
        replies: || {
            let read = Reply::text("Both.").then_call("Read", json!({"file_path": "note.txt"}));
            vec![read.then_call("Bash", json!({"command": "echo up; sleep 1000"}))]
        },
        interrupted_at: Some(Moment::Event(1, "tool_progress")),
        outcome: "cancelled",
    },
    Situation {
        name: "cut off by the limit of tokens, in its text",
        replies: || vec![Reply::text("It is a long sto").stop(Stop::Length)],
        interrupted_at: None,
        outcome: "limit_reached",
    },
    Situation {
        name: "cut off by the limit of tokens, in a call",
        replies: || {
            let call = json!({"file_path": "out.txt", "content": "half"});
            let call = Reply::text("I write.").then_call("Write", call).truncated_call();
            vec![call.stop(Stop::Length)]
        },
        interrupted_at: None,
        outcome: "limit_reached",
    },
    Situation {
        name: "completed after a tool failed",
        replies: || {
            let call = Reply::call("Read", json!({"file_path": "missing.txt"}));
            vec![call, Reply::new().then_reasoning("Hm.").then_text("It is not there.")]
        },
        interrupted_at: None,
        outcome: "completed",
    },
];

/// Runs the first turn, in a session that goes on or ends.
async fn first_turn(bench: &Bench, situation: &Situation, next: Option<&str>) -> Vec<Value> {
    let mut session = bench.open().await;
    session.handle.prompt("begin").await.unwrap();
    match situation.interrupted_at {
        Some(Moment::Event(count, kind)) => {
            session.until_seen(count, |event| event["type"] == kind).await;
        }
        Some(Moment::Request(count)) => {
            // What a consumer does not take keeps the session from going on.
            let asked = async {
                while bench.model.requests().len() < count {
                    tokio::select! {
                        biased;
                        more = session.more() => assert!(more, "the session has ended"),
                        () = tokio::task::yield_now() => {}
                    }
                }
            };
            within(asked).await;
        }
        None => {}
    }
    if situation.interrupted_at.is_some() {
        session.handle.interrupt().await.unwrap();
    }
    if let Some(next) = next {
        session.handle.prompt(next).await.unwrap();
    }
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    let name = situation.name;
    let end = of_kind(&events, "turn_ended")[0];
    assert_eq!(end["outcome"], situation.outcome, "{:?} {name}: {end:#?}", bench.api);
    events
}

fn bench(api: ApiKind, situation: &Situation) -> Bench {
    let replies = (situation.replies)().into_iter().chain([last_turn()]);
    let mut bench = storing(api, replies);
    bench.settings.retries.attempts = 1;
    if situation.name.ends_with("before a retry") {
        bench.settings.retries.attempts = 2;
        bench.settings.retries.first_delay = Duration::from_secs(3600);
    }
    bench.settings.compact = situation.name.ends_with("a summary is made");
    bench
}

/// The history of the last request, without the folder of the bench.
fn last_history(bench: &Bench) -> String {
    let requests = bench.model.main_requests();
    let folder = bench.folder.path().canonicalize().unwrap();
    let messages = history(&requests.last().unwrap().body);
    let messages: Vec<_> = messages.iter().filter(|it| it["role"] != "system").collect();
    format!("{messages:#?}").replace(folder.to_str().unwrap(), "/folder")
}

#[tokio::test]
async fn what_is_sent_does_not_depend_on_a_restart() {
    for situation in SITUATIONS {
        for api in APIS {
            // Gemini sends whole calls.
            if api == ApiKind::Gemini && situation.name.ends_with("in a call") {
                continue;
            }
            let live = bench(api, &situation);
            first_turn(&live, &situation, Some("and now?")).await;
            let mut resumed = bench(api, &situation);
            let events = first_turn(&resumed, &situation, None).await;
            resumed.settings.earlier = Some(earlier(&resumed, &events));
            let (ended, events) = resumed.run("and now?").await;
            let name = situation.name;
            assert_eq!(ended.code(), 0, "{api:?} {name}: {events:#?}");
            assert_eq!(last_history(&resumed), last_history(&live), "{api:?} {name}");
            assert!(!notices(&events).contains("dropped"), "{api:?} {name}");
            resumed.check("resumed-exactly");
        }
    }
}

/// The session of a fork is complete, although it began in another file.
#[tokio::test]
async fn a_fork_contains_what_it_began_with() {
    for api in APIS {
        let replies = [Reply::text("The word is plum."), Reply::text("Yes."), last_turn()];
        let mut bench = storing(api, replies);
        let (_, first) = bench.run("a word, please").await;
        bench.settings.earlier = Some(earlier(&bench, &first).forked());
        let (_, second) = bench.run("is it?").await;
        assert_ne!(first[0]["id"], second[0]["id"]);
        bench.settings.earlier = Some(earlier(&bench, &second));
        let (ended, third) = bench.run("which word?").await;
        assert_eq!(ended.code(), 0, "{api:?}: {third:#?}");
        let requests = bench.model.main_requests();
        let [sent, resumed] = [history(&requests[1].body), history(&requests[2].body)];
        assert_eq!(resumed[..sent.len()], sent, "{api:?}");
        assert!(requests[2].body.to_string().contains("plum"), "{api:?}");
    }
}

/// Reasoning is bound to the list of tools, which the schema of an answer changes.
#[tokio::test]
async fn a_resumed_session_can_be_asked_for_a_structured_answer() {
    for api in APIS {
        let thoughtful = Reply::new().then_reasoning("Three.").then_text("There are three.");
        let answer = |count: u64| Reply::call("StructuredOutput", json!({"count": count}));
        let replies = [thoughtful, answer(3), answer(4)];
        let script = replies.into_iter().fold(fake_model::Script::new(), fake_model::Script::reply);
        let mut bench = super::resume::that_stores(Bench::with_script(api, script));
        let (_, first) = bench.run("count").await;
        bench.settings.schema = Some(json!({
            "type": "object",
            "properties": {"count": {"type": "integer"}},
            "required": ["count"],
        }));
        bench.settings.earlier = Some(earlier(&bench, &first));
        let (ended, second) = bench.run("as JSON").await;
        assert_eq!(ended.code(), 0, "{api:?}: {second:#?}");
        assert_eq!(only(&second, "turn_ended")["structured"], json!({"count": 3}), "{api:?}");
        assert!(notices(&second).contains("reasoning of 1 earlier answers is dropped"), "{api:?}");
        // From then on, the tool belongs to the session.
        bench.settings.earlier = Some(earlier(&bench, &second));
        let (ended, third) = bench.run("once more").await;
        assert_eq!(ended.code(), 0, "{api:?}: {third:#?}");
        assert!(!notices(&third).contains("dropped"), "{api:?}");
        let requests = bench.model.main_requests();
        let [sent, resumed] = [history(&requests[1].body), history(&requests[2].body)];
        assert_eq!(resumed[..sent.len()], sent, "{api:?}");
        bench.check("resumed-with-schema");
    }
}

#[tokio::test]
async fn a_resumed_session_uses_the_model_that_was_used_last() {
    for api in APIS {
        let bench = storing(api, [Reply::text("One.")]);
        let session = bench.open().await;
        session.handle.set_model("fake-model-2").await.unwrap();
        session.handle.prompt("count").await.unwrap();
        session.handle.finish().await.unwrap();
        let (_, events) = session.end().await;
        let earlier = earlier(&bench, &events);
        assert_eq!((earlier.model(), earlier.api()), (Some("fake-model-2"), Some(api)));
    }
}

/// The key is never stored, and neither is a prompt lost that failed at once.
#[tokio::test]
async fn a_prompt_that_failed_is_part_of_the_history() {
    for api in APIS {
        let replies = [Reply::failure(FailureClass::InvalidKey), last_turn()];
        let mut bench = storing(api, replies);
        let (_, first) = bench.run("the word is plum").await;
        bench.settings.earlier = Some(earlier(&bench, &first));
        let (ended, _) = bench.run("which word?").await;
        assert_eq!(ended.code(), 0, "{api:?}");
        assert!(last_history(&bench).contains("plum"), "{api:?}");
        bench.check("resumed-failed");
    }
}
