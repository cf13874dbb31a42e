//! Fields of a request that some servers reject: they are sent first, and left out once they were
//! rejected.

use fake_model::{Reply, Script};
use interlingua_agents::api::ApiKind;
use serde_json::{Value, json};

use super::resume::notices;
use super::{APIS, Bench, only, text};

/// A field that a server rejects, by the pointer to it in the body.
struct Rejected {
    api: ApiKind,
    field: &'static str,
    message: &'static str,
    /// What the request has in its place.
    instead: Option<&'static str>,
    /// The user learns that `--effort` has no effect.
    is_stated: bool,
}

const REJECTED: [Rejected; 9] = [
    Rejected {
        api: ApiKind::Anthropic,
        field: "/thinking",
        message: "thinking.type: adaptive is not supported on this model",
        instead: None,
        is_stated: true,
    },
    Rejected {
        api: ApiKind::Anthropic,
        field: "/cache_control",
        message: "cache_control: Extra inputs are not permitted",
        instead: None,
        is_stated: false,
    },
    Rejected {
        api: ApiKind::Responses,
        field: "/prompt_cache_key",
        message: "Unknown parameter: 'prompt_cache_key'.",
        instead: None,
        is_stated: false,
    },
    Rejected {
        api: ApiKind::Responses,
        field: "/reasoning",
        message: "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        instead: None,
        is_stated: true,
    },
    Rejected {
        api: ApiKind::Responses,
        field: "/stream_options",
        message: "Unknown parameter: 'stream_options.include_obfuscation'.",
        instead: None,
        is_stated: false,
    },
    Rejected {
        api: ApiKind::Chat,
        field: "/stream_options",
        message: "stream_options: extra fields not permitted",
        instead: None,
        is_stated: false,
    },
    Rejected {
        api: ApiKind::Chat,
        field: "/max_completion_tokens",
        message: "Unrecognized request argument supplied: max_completion_tokens",
        instead: Some("/max_tokens"),
        is_stated: false,
    },
    Rejected {
        api: ApiKind::Chat,
        field: "/reasoning_effort",
        message: "Function tools with reasoning_effort are not supported for this model",
        instead: None,
        is_stated: true,
    },
    Rejected {
        api: ApiKind::Gemini,
        field: "/generationConfig/thinkingConfig",
        message: "Thinking level is not supported for this model.",
        instead: None,
        is_stated: true,
    },
];

/// A rejection in the form of an API.
fn rejection(api: ApiKind, message: &str) -> Reply {
    let body = match api {
        ApiKind::Anthropic => {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
        }
        ApiKind::Gemini => {
            json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})
        }
        ApiKind::Responses | ApiKind::Chat => {
            json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}})
        }
    };
    Reply::raw(400, &[("content-type", "application/json")], &body.to_string())
}

/// A bench whose requests have all optional fields.
fn bench(api: ApiKind, replies: impl IntoIterator<Item = Reply>) -> Bench {
    let script = replies.into_iter().fold(Script::new(), Script::reply);
    let mut bench = Bench::with_script(api, script.strict());
    bench.settings.effort = Some("high".to_owned());
    bench.settings.max_tokens = Some(1000);
    bench
}

#[tokio::test]
async fn a_rejected_field_is_left_out_from_then_on() {
    for Rejected { api, field, message, instead, is_stated } in REJECTED {
        let bench = bench(api, [rejection(api, message), Reply::text("One."), Reply::text("Two.")]);
        let session = bench.open().await;
        session.handle.prompt("count").await.unwrap();
        session.handle.prompt("go on").await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?} {field}: {events:#?}");
        assert_eq!(text(&events), "One.|Two.", "{api:?} {field}");
        assert_eq!(only(&events, "retry")["class"], "bad_request", "{api:?} {field}");
        let told = notices(&events).contains("--effort has no effect");
        assert_eq!(told, is_stated, "{api:?} {field}: {}", notices(&events));
        let bodies: Vec<Value> =
            bench.model.main_requests().into_iter().map(|it| it.body).collect();
        let has = |pointer: &str| -> Vec<bool> {
            bodies.iter().map(|body| body.pointer(pointer).is_some()).collect()
        };
        assert_eq!(has(field), [true, false, false], "{api:?} {field}");
        if let Some(instead) = instead {
            assert_eq!(has(instead), [false, true, true], "{api:?} {field}");
        }
        bench.check("rejected");
    }
}

/// A field is left out once. A server that rejects it again fails the turn.
#[tokio::test]
async fn a_field_is_rejected_once() {
    let rejected = || rejection(ApiKind::Chat, "stream_options is not allowed");
    let bench = bench(ApiKind::Chat, [rejected(), rejected()]);
    let (ended, events) = bench.run("hi").await;
    assert_eq!(ended.code(), 1, "{events:#?}");
    assert_eq!(only(&events, "error")["class"], "bad_request");
    assert_eq!(bench.model.main_requests().len(), 2);
}

#[tokio::test]
async fn settings_are_sent_in_the_words_of_each_api() {
    for api in APIS {
        let call = Reply::call("LS", json!({"path": "."}));
        let bench = bench(api, [call, Reply::text("Done.")]);
        bench.run("hi").await;
        let bodies: Vec<Value> =
            bench.model.main_requests().into_iter().map(|it| it.body).collect();
        let (limit, effort) = match api {
            ApiKind::Anthropic => ("/max_tokens", ("/output_config/effort", "high")),
            ApiKind::Responses => ("/max_output_tokens", ("/reasoning/effort", "high")),
            ApiKind::Chat => ("/max_completion_tokens", ("/reasoning_effort", "high")),
            ApiKind::Gemini => (
                "/generationConfig/maxOutputTokens",
                ("/generationConfig/thinkingConfig/thinkingLevel", "HIGH"),
            ),
        };
        for body in &bodies {
            assert_eq!(body.pointer(limit), Some(&json!(1000)), "{api:?}: {body}");
            assert_eq!(body.pointer(effort.0), Some(&json!(effort.1)), "{api:?}: {body}");
        }
        bench.check("settings");
    }
}

/// Without them, every request of a long conversation costs its whole length.
#[tokio::test]
async fn prompts_are_cached_where_the_provider_has_to_be_asked() {
    for (api, field) in
        [(ApiKind::Anthropic, "cache_control"), (ApiKind::Responses, "prompt_cache_key")]
    {
        let call = Reply::call("LS", json!({"path": "."}));
        let bench = bench(api, [call, Reply::text("Done.")]);
        let (_, events) = bench.run("hi").await;
        let session = &events[0]["id"];
        let expected = match api {
            ApiKind::Anthropic => json!({"type": "ephemeral"}),
            _ => session.clone(),
        };
        for request in bench.model.main_requests() {
            assert_eq!(request.body[field], expected, "{api:?}");
        }
    }
}
