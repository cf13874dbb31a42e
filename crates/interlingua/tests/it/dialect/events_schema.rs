//! The schema of our own events names every kind, and every event keeps its envelope.

use serde_json::Value;

use crate::support::{Case, translate};

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../../docs/events.schema.json")).unwrap()
}

#[test]
fn the_schema_names_every_kind() {
    let named: Vec<Value> = schema()["properties"]["type"]["examples"].as_array().unwrap().clone();
    let kinds: Vec<Value> =
        interlingua::event::Data::KINDS.iter().map(|kind| Value::from(*kind)).collect();
    assert_eq!(named, kinds);
}

#[test]
fn every_event_has_what_the_schema_requires() {
    let schema = schema();
    let required: Vec<_> = schema["required"].as_array().unwrap().iter().collect();
    for case in Case::all() {
        for event in translate("events", &case.input, &case.exit).records() {
            for field in &required {
                let field = field.as_str().unwrap();
                let expected = schema["properties"][field]["type"].as_str().unwrap_or("integer");
                let fits = match expected {
                    "integer" => event[field].is_u64(),
                    "string" => event[field].is_string(),
                    "array" => event[field].as_array().is_some_and(|items| items.len() == 2),
                    other => panic!("{other} is not used"),
                };
                assert!(fits, "{}: {field} of {event}", case.name);
            }
        }
    }
}
