//! Every permission request and every question is resolved exactly once.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Case, exit, translate};

/// The number of open requests after some events, by kind and id. Ids are those of an epoch.
fn check(events: &[Value], name: &str) -> usize {
    let mut open = BTreeMap::new();
    let mut count = 0;
    for event in events {
        let kind = match event["type"].as_str() {
            Some("permission_requested" | "permission_resolved") => "permission",
            Some("question_asked" | "question_answered") => "question",
            // A turn that waits for its client keeps its requests.
            Some("turn_ended") if event["outcome"] != "waiting_for_client" => {
                assert!(open.is_empty(), "{name}: {open:?} are open at the end of the turn");
                continue;
            }
            _ => continue,
        };
        let Some(request) = event["request"].as_str() else { continue };
        let key = (kind, request.to_owned());
        if event["type"] == "permission_requested" || event["type"] == "question_asked" {
            count += 1;
            assert_eq!(open.insert(key, ()), None, "{name}: {request} is open twice");
        } else {
            assert_eq!(open.remove(&key), Some(()), "{name}: {request} is not open: {event}");
        }
    }
    assert!(open.is_empty(), "{name}: {open:?} are open");
    count
}

#[test]
fn every_request_is_resolved_once() {
    let mut count = 0;
    for case in Case::all() {
        count += check(&translate("events", &case.input, &case.exit).records(), &case.name);
    }
    assert!(count >= 15, "{count}");
}

#[test]
fn a_request_is_resolved_wherever_the_stream_breaks_off() {
    for case in Case::small() {
        let ends = memchr::memchr_iter(b'\n', &case.input).map(|end| end + 1);
        for end in ends {
            let input = &case.input[..end];
            let asks = |words: &[u8]| memchr::memmem::find(input, words).is_some();
            if asks(b"permission") || asks(b"Approval") || asks(b"question") {
                let events = translate("events", input, &exit("-15")).records();
                check(&events, &case.name);
            }
        }
    }
}
