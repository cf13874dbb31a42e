//! Structured answers: the model gives its final answer as the input of a tool, which has to fit a
//! schema.
//!
//! All model APIs have tools, while their own forms of structured output differ, and some cannot be
//! combined with tools.

use jsonschema::Validator;
use serde_json::Value;

use super::model::OfferedTool;
use super::turns::ANSWER_TOOL;
use crate::error::Error;

/// The schema of the final answer.
#[derive(Debug)]
pub(crate) struct AnswerSchema {
    schema: Value,
    validator: Validator,
}

impl AnswerSchema {
    /// Checks that this is the schema of an object.
    pub(crate) fn new(schema: Value) -> Result<Self, Error> {
        let invalid = |problem: String| Error::InvalidSchema { problem };
        let is_object = schema.get("type").is_some_and(|kind| kind == "object");
        if !is_object {
            return Err(invalid(
                "it has to describe an object (`\"type\": \"object\"`)".to_owned(),
            ));
        }
        let validator =
            jsonschema::validator_for(&schema).map_err(|problem| invalid(problem.to_string()))?;
        Ok(Self { schema, validator })
    }

    /// What is wrong with an answer; `None` if it fits.
    pub(crate) fn problem(&self, answer: &Value) -> Option<String> {
        let problems = self.validator.iter_errors(answer).take(5).map(|problem| {
            let place = problem.instance_path().to_string();
            if place.is_empty() { problem.to_string() } else { format!("{place}: {problem}") }
        });
        let problems: Vec<_> = problems.collect();
        (!problems.is_empty()).then(|| problems.join("; "))
    }

    /// The tool by which the model gives the answer.
    pub(crate) fn tool(&self) -> OfferedTool {
        let description = "Gives the final answer. Call it exactly once, when the work is done. \
                           The input is the answer, and has to fit the schema.";
        OfferedTool {
            name: ANSWER_TOOL.to_owned(),
            description: description.to_owned(),
            input_schema: self.schema.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_has_to_fit() {
        let schema = json!({
            "type": "object",
            "properties": {"count": {"type": "integer", "minimum": 1}},
            "required": ["count"],
        });
        let schema = AnswerSchema::new(schema).unwrap();
        assert_eq!(schema.problem(&json!({"count": 3})), None);
        assert!(schema.problem(&json!({"count": 0})).unwrap().contains("/count"));
        assert!(schema.problem(&json!({})).unwrap().contains("count"));
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_rejected() {
        for schema in [json!({"type": "string"}), json!({"type": "object", "properties": 7})] {
            assert!(AnswerSchema::new(schema).is_err());
        }
    }
}
