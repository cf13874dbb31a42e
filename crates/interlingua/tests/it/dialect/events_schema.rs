//! The schema of our own events is generated from the code, and all events conform to it.

use interlingua::dialect::events::schema;
use interlingua::{EntryRef, RawRecords, ReadOptions, Reader, Source};
use serde_json::Value;

use crate::support::{Case, translate};

/// `UPDATE_SCHEMA=1` writes the file.
#[test]
fn the_schema_file_is_up_to_date() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/events.schema.json");
    let now = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let file = std::fs::read_to_string(&path).unwrap();
    assert!(file == now, "docs/events.schema.json is old: run this test with UPDATE_SCHEMA=1");
}

#[test]
fn every_event_conforms_to_the_schema() {
    let schema = schema();
    for case in Case::all() {
        for event in translate("events", &case.input, &case.exit).records() {
            assert_eq!(fault(&schema, &event, &schema), None, "{}: {event}", case.name);
        }
    }
}

#[test]
fn every_entry_of_a_log_with_records_conforms_to_the_schema() {
    let schema = schema();
    for case in Case::small() {
        let options = ReadOptions { raw_records: RawRecords::Keep, ..ReadOptions::default() };
        let mut reader = Reader::new(Source::Recognise, options).unwrap();
        let mut entries = Vec::new();
        let mut keep = |entry: EntryRef<'_>| entries.push(serde_json::to_value(entry).unwrap());
        reader.push(&case.input, Some(1), &mut keep).unwrap();
        reader.finish(&case.exit, Some(2), &mut keep).unwrap();
        for entry in entries {
            assert_eq!(fault(&schema, &entry, &schema), None, "{}: {entry}", case.name);
        }
    }
}

#[test]
fn violations_of_the_schema_are_found() {
    let schema = schema();
    let event = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let good = event(
        r#"{"interlingua":1,"type":"notice","sequence":0,"line":1,"bytes":[0,1],"text":"a"}"#,
    );
    assert_eq!(fault(&schema, &good, &schema), None);
    let mut bad = good.clone();
    bad["text"] = 7.into();
    assert!(fault(&schema, &bad, &schema).is_some());
    bad = good.clone();
    bad.as_object_mut().unwrap().remove("sequence");
    assert!(fault(&schema, &bad, &schema).is_some());
}

/// Why a value does not conform to a schema, for the part of JSON Schema that ours uses.
fn fault(schema: &Value, value: &Value, root: &Value) -> Option<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/").unwrap();
        return fault(&root["$defs"][name], value, root);
    }
    if let Some(constant) = schema.get("const")
        && constant != value
    {
        return Some(format!("{value} is not {constant}"));
    }
    let fits = match schema["type"].as_str() {
        None => true,
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64() && schema["minimum"].is_null(),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some(other) => panic!("{other} is not used"),
    };
    if !fits {
        return Some(format!("{value} is not of type {}", schema["type"]));
    }
    let required = schema["required"].as_array().into_iter().flatten();
    for field in required {
        if value.get(field.as_str().unwrap()).is_none() {
            return Some(format!("{field} is missing"));
        }
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, inside) in properties {
        if let Some(fault) = value.get(name).and_then(|value| fault(inside, value, root)) {
            return Some(format!("{name}: {fault}"));
        }
    }
    if let (Some(inside), Some(items)) = (schema.get("items"), value.as_array()) {
        let count = items.len() as u64;
        let few = schema["minItems"].as_u64().is_some_and(|least| count < least);
        let many = schema["maxItems"].as_u64().is_some_and(|most| count > most);
        if few || many {
            return Some(format!("{count} items"));
        }
        if let Some(fault) = items.iter().find_map(|item| fault(inside, item, root)) {
            return Some(fault);
        }
    }
    let all = schema["allOf"].as_array().into_iter().flatten();
    all.filter(|rule| fault(&rule["if"], value, root).is_none())
        .find_map(|rule| fault(&rule["then"], value, root))
}
