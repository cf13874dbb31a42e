//! Whether an input fits its schema, with an explanation that a model can act on.
//!
//! It knows the part of JSON Schema that the definitions use: types, `required`, `properties`,
//! `items` and `enum`. A property that is not listed is an error, because a misspelled option would
//! be ignored in silence otherwise.

use serde_json::{Map, Value};

/// What is wrong with an input; `None` if it fits.
pub(super) fn problem(schema: &Value, input: &Value) -> Option<String> {
    check(schema, input, "the input")
}

fn check(schema: &Value, value: &Value, what: &str) -> Option<String> {
    let expected = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let fits = match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        _ => true,
    };
    if !fits {
        let expected = if expected == "integer" { "non-negative integer" } else { expected };
        return Some(format!("{what} has to be of the type {expected}"));
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        let choices: Vec<_> = choices.iter().filter_map(Value::as_str).collect();
        return Some(format!("{what} has to be one of {}", choices.join(", ")));
    }
    match value {
        Value::Object(fields) => check_object(schema, fields, what),
        Value::Array(items) => {
            let schema = schema.get("items")?;
            let check = |(at, item)| check(schema, item, &format!("item {at} of {what}"));
            items.iter().enumerate().find_map(check)
        }
        _ => None,
    }
}

fn check_object(schema: &Value, fields: &Map<String, Value>, what: &str) -> Option<String> {
    let known = schema.get("properties").and_then(Value::as_object)?;
    let required = schema.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.find(|name| !fields.contains_key(*name)) {
        return Some(format!("{what} lacks the field `{missing}`"));
    }
    let is_required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|one| one == name))
    };
    fields.iter().find_map(|(name, value)| match known.get(name) {
        None => Some(format!("{what} has an unknown field `{name}`")),
        // Some models send `null` for what they leave out.
        Some(_) if value.is_null() && !is_required(name) => None,
        Some(schema) => check(schema, value, &format!("`{name}`")),
    })
}

/// What an object of a schema takes, in a few words: the fields with their types.
pub(super) fn summary(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
    let fields = schema.get("properties").and_then(Value::as_object);
    let field = |(name, schema): (&String, &Value)| {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
        let optional = if is_required(name) { "" } else { ", optional" };
        format!("`{name}` ({kind}{optional})")
    };
    let mut fields: Vec<_> = fields.into_iter().flatten().map(field).collect();
    // The order of a JSON object depends on features that other crates may enable.
    fields.sort_unstable();
    fields.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_named() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": "integer"},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "edits": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"old": {"type": "string"}},
                    "required": ["old"],
                }},
            },
            "required": ["path"],
        });
        let cases = [
            (json!({"path": "x", "limit": 3, "mode": "b", "edits": [{"old": ""}]}), None),
            (json!({"path": "x", "limit": null}), None),
            (json!([]), Some("the input has to be of the type object")),
            (json!({}), Some("the input lacks the field `path`")),
            (json!({"path": null}), Some("`path` has to be of the type string")),
            (json!({"path": "x", "Limit": 3}), Some("the input has an unknown field `Limit`")),
            (
                json!({"path": "x", "limit": -3}),
                Some("`limit` has to be of the type non-negative integer"),
            ),
            (json!({"path": "x", "mode": "c"}), Some("`mode` has to be one of a, b")),
            (
                json!({"path": "x", "edits": [{"old": ""}, {}]}),
                Some("item 1 of `edits` lacks the field `old`"),
            ),
        ];
        for (input, expected) in cases {
            assert_eq!(problem(&schema, &input).as_deref(), expected, "{input}");
        }
        assert_eq!(summary(&schema["properties"]["edits"]["items"]), "`old` (string)");
    }
}
