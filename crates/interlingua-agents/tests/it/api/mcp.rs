//! MCP servers that are processes, as tools of a model API.

use std::time::Duration;

use fake_model::Reply;
use interlingua_agents::api::mcp::{McpServer, McpTransport};
use interlingua_agents::api::{ApiAgent, ApiKind};
use interlingua_agents::permission::{Effect, Mode, Policy, Rule, Rules};
use interlingua_agents::{Agent, Options};
use serde_json::{Value, json};

use super::{APIS, Bench};
use crate::support::{turn_end, within};

const PROGRAM: &str = env!("CARGO_BIN_EXE_agents-test-program");

/// A server that behaves in some way.
fn server(name: &str, behaviour: &str) -> McpServer {
    let transport = McpTransport::Stdio {
        command: PROGRAM.to_owned(),
        arguments: vec!["mcp-server".to_owned(), behaviour.to_owned()],
        environment: Vec::new(),
        folder: None,
    };
    McpServer::new(name, transport)
}

/// A bench with the usual server, and replies that call its tools.
fn bench(calls: &[(&str, &str)]) -> Bench {
    let call = |(tool, text): &(&str, &str)| {
        Reply::call(&format!("mcp__test__{tool}"), json!({"text": text}))
    };
    let replies = calls.iter().map(call).chain([Reply::text("Done.")]);
    let mut bench = Bench::new(ApiKind::Anthropic, replies);
    bench.settings.mcp = vec![server("test", "usual")];
    bench
}

/// The ends of the calls.
fn ends(events: &[Value]) -> Vec<&Value> {
    events.iter().filter(|event| event["type"] == "tool_ended").collect()
}

fn notices(events: &[Value]) -> Vec<&str> {
    let notices = events.iter().filter(|event| event["type"] == "notice");
    notices.map(|event| event["text"].as_str().unwrap()).collect()
}

/// The tools of servers that the first request offers.
fn offered(bench: &Bench) -> Vec<Value> {
    let requests = bench.model.main_requests();
    let tools = requests[0].body["tools"].as_array().unwrap().clone();
    let is_ours = |tool: &Value| tool["name"].as_str().unwrap().starts_with("mcp__");
    tools.into_iter().filter(is_ours).collect()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn tools_are_offered_with_their_schemas_in_a_stable_order() {
    let bench = bench(&[]);
    let (_, events) = bench.run("do it").await;
    assert_eq!(turn_end(&events)["outcome"], "completed");
    let tools = offered(&bench);
    let expected =
        ["cancelled", "child", "die", "echo", "fail", "hang", "progress", "refuse", "variable"];
    let expected: Vec<_> = expected.iter().map(|name| format!("mcp__test__{name}")).collect();
    assert_eq!(names(&tools), expected);
    assert_eq!(tools[3]["description"], "Does echo.");
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    assert_eq!(tools[3]["input_schema"], schema);
    bench.check("mcp");
}

/// Whoever lists the tools that may be used lists all of them.
#[tokio::test]
async fn only_listed_tools_are_offered() {
    let all = 9;
    let cases = [
        ("Read", vec![], None),
        ("Read,mcp__test__echo", vec!["mcp__test__echo"], None),
        ("mcp__test__c*", vec!["mcp__test__cancelled", "mcp__test__child"], None),
        ("mcp__test__e*", vec!["mcp__test__echo"], None),
        ("mcp__test__echo,mcp__other__*", vec!["mcp__test__echo"], Some("`mcp__other__*`")),
    ];
    for (listed, expected, missing) in cases {
        let mut bench = bench(&[("echo", "x")]);
        bench.settings.tools.tools = Some(listed.split(',').map(str::to_owned).collect());
        let (_, events) = bench.run("do it").await;
        assert_eq!(names(&offered(&bench)), expected, "{listed}");
        let told = notices(&events).into_iter().find(|text| text.contains("no MCP server has"));
        assert_eq!(told.is_some(), missing.is_some(), "{listed}: {told:?}");
        assert!(told.is_none_or(|told| missing.is_some_and(|it| told.contains(it))), "{told:?}");
        let runs = expected.contains(&"mcp__test__echo");
        assert_eq!(ends(&events)[0]["status"] == "completed", runs, "{listed}: {events:#?}");
    }
    let mut bench = bench(&[]);
    bench.settings.tools.tools = Some(vec!["mcp__*".to_owned()]);
    bench.run("do it").await;
    assert_eq!(offered(&bench).len(), all);
}

#[tokio::test]
async fn it_is_stated_that_servers_are_not_in_the_sandbox() {
    let sentence = "MCP servers run outside of any sandbox, and can do what you can: `test`";
    let mut bench = bench(&[]);
    let (_, events) = bench.run("do it").await;
    assert!(notices(&events).contains(&sentence), "{:?}", notices(&events));
    bench.settings.mcp.clear();
    let (_, events) = bench.run("do it").await;
    assert!(!notices(&events).iter().any(|notice| notice.contains("MCP")));
}

#[tokio::test]
async fn a_call_has_a_result() {
    let bench = bench(&[("echo", "hello")]);
    let (_, events) = bench.run("do it").await;
    let ends = ends(&events);
    assert_eq!(ends[0]["status"], "completed", "{ends:?}");
    assert_eq!(ends[0]["output"], "echo: hello");
    assert_eq!(ends[0]["structured"], json!({"length": 11}));
    let results = bench.model.tool_results();
    assert_eq!(results[0].text.as_deref(), Some("echo: hello"));
    assert_eq!(bench.model.findings(), []);
}

#[tokio::test]
async fn every_api_calls_the_tools_of_servers() {
    for api in APIS {
        let call = Reply::call("mcp__test__echo", json!({"text": "plum"}));
        let mut bench = Bench::new(api, [call, Reply::text("Done.")]);
        bench.settings.mcp = vec![server("test", "usual")];
        let (ended, events) = bench.run("do it").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        let result = bench.model.tool_results()[0].text.clone().unwrap();
        assert!(result.contains("plum"), "{api:?}: {result}");
        bench.check("mcp");
    }
}

#[tokio::test]
async fn errors_reach_the_model() {
    let bench = bench(&[("fail", ""), ("refuse", "")]);
    let (_, events) = bench.run("do it").await;
    let ends = ends(&events);
    assert_eq!((&ends[0]["status"], &ends[1]["status"]), (&json!("failed"), &json!("failed")));
    assert_eq!(ends[0]["output"], "no such ticket");
    let refused = "The MCP server `test` answered with an error: text is missing";
    assert_eq!(ends[1]["output"], refused);
    assert_eq!(turn_end(&events)["outcome"], "completed");
}

#[tokio::test]
async fn progress_is_shown_while_a_call_runs() {
    let bench = bench(&[("progress", "")]);
    let (_, events) = bench.run("do it").await;
    let progress = events.iter().filter(|event| event["type"] == "tool_progress");
    // Reports that follow each other closely are one event.
    let progress: String = progress.map(|event| event["output"].as_str().unwrap()).collect();
    assert_eq!(progress, "step (1 of 2)\nstep (2 of 2)\n");
    assert_eq!(ends(&events)[0]["output"], "done");
}

#[tokio::test]
async fn every_call_needs_a_permission_whatever_the_hints_are() {
    let mut bench = bench(&[("echo", "hello")]);
    bench.policy.mode = Mode::Ask;
    let (_, events) = bench.run("do it").await;
    let asked = events.iter().find(|event| event["type"] == "permission_requested").unwrap();
    assert_eq!(asked["tool"], "mcp__test__echo", "{asked}");
    assert_eq!(ends(&events)[0]["status"], "denied");
}

#[tokio::test]
async fn a_rule_allows_the_tools_of_servers() {
    // By the kind of work, and by the server.
    for tool in ["mcp", "mcp__test__*"] {
        let mut bench = bench(&[("echo", "hello")]);
        let rule = Rule::new(tool, None, Effect::Allow).unwrap();
        bench.policy = Policy { mode: Mode::Ask, rules: Rules::new(vec![rule]) };
        let (_, events) = bench.run("do it").await;
        assert_eq!(ends(&events)[0]["output"], "echo: hello", "{tool}");
    }
}

#[tokio::test]
async fn a_server_that_dies_fails_its_calls_with_the_reason() {
    let bench = bench(&[("die", ""), ("echo", "again")]);
    let (_, events) = bench.run("do it").await;
    for end in ends(&events) {
        assert_eq!(end["status"], "failed", "{end}");
        let output = end["output"].as_str().unwrap();
        assert!(output.contains("the MCP server `test` has ended"), "{output}");
        assert!(output.contains("out of memory"), "{output}");
    }
    assert_eq!(turn_end(&events)["outcome"], "completed");
}

#[tokio::test]
async fn a_call_that_takes_too_long_times_out_and_is_cancelled() {
    let mut bench = bench(&[("hang", ""), ("cancelled", "")]);
    bench.settings.mcp[0].call_limit = Duration::from_millis(200);
    let (_, events) = bench.run("do it").await;
    let ends = ends(&events);
    assert_eq!(ends[0]["status"], "timed_out", "{ends:?}");
    assert_eq!(ends[0]["output"], "The MCP server `test` did not answer within 200 ms.");
    assert_ne!(ends[1]["output"], "[]", "{ends:?}");
}

#[tokio::test]
async fn an_interrupted_call_is_cancelled_at_the_server() {
    let bench = bench(&[("hang", ""), ("cancelled", "")]);
    let mut session = bench.open().await;
    session.handle.prompt("do it").await.unwrap();
    // Its input is complete, and it runs.
    session.until(|event| event["type"] == "message_ended").await;
    within(session.handle.interrupt()).await.unwrap();
    session.until(|event| event["type"] == "turn_ended").await;
    session.handle.prompt("again").await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    let ends = ends(&events);
    assert_eq!(ends[0]["status"], "cancelled", "{ends:?}");
    assert_ne!(ends[1]["output"], "[]", "{ends:?}");
}

#[tokio::test]
async fn a_server_that_does_not_start_is_a_notice() {
    let mut bench = bench(&[("echo", "hello")]);
    let mut silent = server("silent", "silent");
    silent.start_limit = Duration::from_millis(200);
    let mut missing = server("missing", "usual");
    missing.transport = McpTransport::Stdio {
        command: "/nonexistent/server".to_owned(),
        arguments: Vec::new(),
        environment: Vec::new(),
        folder: None,
    };
    bench.settings.mcp.extend([silent, missing, server("broken", "broken")]);
    let (_, events) = bench.run("do it").await;
    let notices = notices(&events);
    let about = |name: &str| {
        let start = format!("the MCP server `{name}` is not available");
        *notices.iter().find(|notice| notice.starts_with(&start)).unwrap()
    };
    assert!(about("silent").contains("it did not start within 200 ms"), "{notices:?}");
    assert!(about("missing").contains("/nonexistent/server could not be started"), "{notices:?}");
    assert!(about("broken").contains("the license has expired"), "{notices:?}");
    // The others work.
    assert_eq!(ends(&events)[0]["output"], "echo: hello");
}

#[tokio::test]
async fn a_required_server_that_does_not_start_fails_the_session() {
    let mut bench = bench(&[]);
    let mut broken = server("broken", "broken");
    broken.required = true;
    bench.settings.mcp.push(broken);
    let agent = Box::new(ApiAgent::new(bench.settings.clone()));
    let problem = within(agent.start(Options::default())).await.unwrap_err().to_string();
    assert!(problem.contains("`broken`, which is required"), "{problem}");
    assert!(problem.contains("the license has expired"), "{problem}");
    assert_eq!(bench.model.requests().len(), 0);
}

#[tokio::test]
async fn names_that_collide_are_kept_apart() {
    let call = Reply::call("mcp__x_y__a_b_2", json!({"text": "hello"}));
    let mut bench = Bench::new(ApiKind::Responses, [call, Reply::text("Done.")]);
    bench.settings.mcp = vec![server("x y", "colliding")];
    let (_, events) = bench.run("do it").await;
    assert_eq!(names(&offered(&bench)), ["mcp__x_y__a_b", "mcp__x_y__a_b_2", "mcp__x_y__a_b_3"]);
    // In the order of the names: "a b", "a.b", "a/b".
    assert_eq!(ends(&events)[0]["output"], "a.b: hello");
    assert_eq!(bench.model.findings(), []);
}

#[tokio::test]
async fn a_server_without_the_older_handshake_works() {
    let mut bench = bench(&[("echo", "hello")]);
    bench.settings.mcp = vec![server("test", "modern")];
    let (_, events) = bench.run("do it").await;
    assert_eq!(notices(&events).iter().filter(|it| it.contains("not available")).count(), 0);
    assert_eq!(ends(&events)[0]["output"], "echo: hello");
}

/// Seen in practice: servers that log to their standard output.
#[tokio::test]
async fn what_is_not_a_message_is_skipped() {
    let mut bench = bench(&[("echo", "hello")]);
    bench.settings.mcp = vec![server("test", "noisy")];
    let (_, events) = bench.run("do it").await;
    assert_eq!(ends(&events)[0]["output"], "echo: hello", "{:?}", notices(&events));
}

/// Cargo sets this variable for tests.
const INHERITED: &str = "CARGO_MANIFEST_DIR";

#[tokio::test]
async fn keys_are_not_in_the_environment_of_a_server() {
    let inherited = std::env::var(INHERITED).unwrap();
    for (hidden, expected) in [(vec![], &*inherited), (vec![INHERITED.to_owned()], "(not set)")] {
        let mut bench = bench(&[("variable", INHERITED), ("variable", "MODE")]);
        bench.settings.tools.hidden_variables = hidden;
        if let McpTransport::Stdio { environment, .. } = &mut bench.settings.mcp[0].transport {
            environment.push(("MODE".to_owned(), "test".to_owned()));
        }
        let (_, events) = bench.run("do it").await;
        let ends = ends(&events);
        assert_eq!((&ends[0]["output"], &ends[1]["output"]), (&json!(expected), &json!("test")));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_process_is_left() {
    use crate::support::is_alive;

    for behaviour in ["usual", "stubborn"] {
        let mut bench = bench(&[("child", "")]);
        bench.settings.mcp = vec![server("test", behaviour)];
        let (_, events) = bench.run("do it").await;
        let output = ends(&events)[0]["output"].as_str().unwrap();
        let (server, child) = output.split_once(' ').unwrap();
        assert!(!is_alive(server), "{behaviour}");
        assert!(!is_alive(child), "{behaviour}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_guarded_server_works() {
    use interlingua_agents::process::Guard;

    let mut bench = bench(&[("echo", "hello")]);
    bench.settings.tools.guard =
        Some(Guard { program: PROGRAM.into(), arguments: vec!["guard".into()] });
    let (_, events) = bench.run("do it").await;
    assert_eq!(ends(&events)[0]["output"], "echo: hello");
}
