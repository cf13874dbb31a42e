//! The tools for the form of a web page, which browsers of the agent API implement.

use serde_json::{Map, Value, json};

use super::ClientTool;

/// Both tools.
pub(super) fn tools() -> Vec<ClientTool> {
    vec![
        ClientTool {
            name: "getFormSnapshot".to_owned(),
            description: "Returns the fields of the form that the user sees, with their labels, kinds and current values.".to_owned(),
            input_schema: schema(json!({
                "type": "object",
                "properties": {
                    "instruction": {
                        "type": "string",
                        "description": "What the snapshot is needed for.",
                    },
                    "document": {
                        "type": "string",
                        "description": "Further text that the form is filled in from.",
                    },
                },
            })),
            read_only: true,
        },
        ClientTool {
            name: "executeFormActions".to_owned(),
            description: "Fills in, selects and clicks fields of the form that the user sees. Returns how many actions were applied and skipped.".to_owned(),
            input_schema: schema(json!({
                "type": "object",
                "properties": {
                    "actions": { "type": "array", "items": action() },
                    "fields": {
                        "type": "array",
                        "items": { "type": "object" },
                        "description": "The fields as getFormSnapshot returned them.",
                    },
                },
                "required": ["actions", "fields"],
            })),
            read_only: false,
        },
    ]
}

fn action() -> Value {
    json!({
        "type": "object",
        "properties": {
            "action": { "type": "string", "enum": ["fill", "click", "select"] },
            "fieldId": { "type": "string", "description": "The fieldId of the snapshot." },
            "value": { "type": "string", "description": "The value, unless the field is clicked." },
        },
        "required": ["action", "fieldId"],
    })
}

fn schema(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}
