//! Responses whose calls are read differently by the dialect and by the collector of the answer, and
//! changes of the model.

use serde_json::json;

use super::*;

fn agent() -> AgentLoop {
    agent_of(ApiKind::Chat)
}

fn agent_of(api: ApiKind) -> AgentLoop {
    let settings = LoopSettings {
        api,
        model: "m".to_owned(),
        session: "s".to_owned(),
        frozen: Frozen { system: String::new(), tools: Vec::new() },
        max_tokens: None,
        effort: None,
        limits: Limits::default(),
        prices: Prices::builtin(),
        retries: RetryPolicy::default(),
        structured: false,
        compacts: false,
    };
    let mut agent = AgentLoop::new(settings, History::default());
    agent.begin(vec![Part::Text("read".to_owned())]);
    agent
}

fn made(name: &str, input: Value) -> MadeCall {
    MadeCall { id: "call_1".to_owned(), name: name.to_owned(), input }
}

fn call(name: &str, input: Value) -> Content {
    let (id, name) = ("call_1".to_owned(), name.to_owned());
    Content::Call(AnswerCall { id, unnamed: false, name, input, malformed: false })
}

fn responded(content: Content, made: MadeCall) -> Next {
    let answer = Answer { content: vec![content], native: None };
    agent().responded(&completed(), Collected { answer, ..Collected::default() }, vec![made])
}

/// The turn was reported as completed, and the call as never answered.
#[test]
fn a_call_that_the_answer_does_not_have_fails_the_turn() {
    let input = || json!({"file_path": "a"});
    let next = responded(Content::Text("I read.".to_owned()), made("Read", input()));
    assert!(matches!(next, Next::Fail(_)), "{next:?}");
    let next = responded(call("Read", input()), made("Read", input()));
    assert!(matches!(next, Next::Run(_)), "{next:?}");
}

/// What was judged and run would not be what the model learns the result of.
#[test]
fn a_call_that_differs_from_that_of_the_answer_is_not_run() {
    let made = || made("Bash", json!({"command": "true"}));
    for other in [call("Read", json!({"command": "true"})), call("Bash", json!({"command": "b"}))] {
        let next = responded(other, made());
        assert!(matches!(next, Next::Fail(_)), "{next:?}");
    }
}

/// The token went to the other model, which cannot know the response.
#[test]
fn another_model_does_not_continue_a_response() {
    let mut agent = agent_of(ApiKind::Gemini);
    let next = agent.continues(Some("token-of-m".to_owned()), true);
    assert!(matches!(next, Some(Next::Request)), "{next:?}");
    assert!(agent.body().contains("token-of-m"));
    assert_eq!(agent.set_model("m".to_owned()), Dropped::default());
    assert!(agent.body().contains("token-of-m"));
    let dropped = agent.set_model("other".to_owned());
    assert_eq!(dropped, Dropped { reasoning: false, continuation: true });
    assert!(!agent.body().contains("token-of-m"));
}

/// The request that continued a paused response had a call without a result, which providers reject.
#[test]
fn a_malformed_call_in_a_paused_response_is_answered() {
    let malformed = Content::Call(AnswerCall {
        id: "call_1".to_owned(),
        unnamed: false,
        name: "Read".to_owned(),
        input: json!({}),
        malformed: true,
    });
    for content in [malformed, call("Read", json!({"file_path": "a"}))] {
        let mut agent = agent_of(ApiKind::Anthropic);
        let answer = Answer { content: vec![content], native: None };
        let collected = Collected { answer, paused: true, ..Collected::default() };
        let next = agent.responded(&completed(), collected, Vec::new());
        assert!(matches!(next, Next::Request), "{next:?}");
        assert_eq!(agent.open_calls(), []);
    }
}
