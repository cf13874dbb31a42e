//! The rules that a response of the `generateContent` API must keep.

use serde_json::Value;

use crate::check::{Findings, Rules};

/// The finish reasons.
const FINISH_REASONS: &[&str] = &[
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MALFORMED_RESPONSE",
    "MISSING_THOUGHT_SIGNATURE",
    "CONTINUATION",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_OTHER",
    "NO_IMAGE",
];

/// The fields of a part that have data, of which a part has one.
const DATA: &[&str] = &[
    "text",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "inlineData",
    "fileData",
];

/// The counts that only grow within a response.
const COUNTS: &[&str] = &["promptTokenCount", "candidatesTokenCount", "totalTokenCount"];

/// The rules of `gemini-api`.
#[derive(Debug, Default)]
pub(super) struct GeminiApiRules {
    /// A response has begun and not ended.
    open: bool,
    /// A response or an error was read.
    any: bool,
    /// The id of the current response, or of the last one.
    response: Option<String>,
    counts: [u64; COUNTS.len()],
    /// Code was sent, and its result was not.
    code: bool,
}

impl Rules for GeminiApiRules {
    fn record(&mut self, record: &Value, findings: &mut Findings) {
        if let Some(error) = record.get("error") {
            let code = error.get("code").is_some_and(Value::is_u64);
            findings.require(code, "error-fields", "`error.code` is not a number");
            for field in ["message", "status"] {
                let there = error.get(field).is_some_and(Value::is_string);
                let message = format!("`error.{field}` is not a string");
                findings.require(there, "error-fields", message);
            }
            (self.open, self.any) = (false, true);
            return;
        }
        self.check_response(record, findings);
        self.check_counts(record, findings);
        let mut candidates =
            record.get("candidates").and_then(Value::as_array).into_iter().flatten();
        // The others are alternatives, with ends of their own.
        if let Some(first) = candidates.find(|it| it["index"].as_u64().unwrap_or(0) == 0) {
            self.check_candidate(first, findings);
        }
        if let Some(prompt) = record.get("promptFeedback")
            && prompt.get("blockReason").is_some()
        {
            let reason = prompt.get("blockReason").is_some_and(Value::is_string);
            findings.require(reason, "block-reason", "`blockReason` is not a string");
            let alone = record.get("candidates").is_none();
            findings.require(alone, "block-reason", "a blocked prompt has candidates");
            self.open = false;
        }
    }

    fn finish(&mut self, findings: &mut Findings) {
        let message = "the stream ends without a `finishReason`";
        findings.require(!self.open, "finish-reason-last", message);
        findings.require(self.any, "response", "there is no response");
    }
}

impl GeminiApiRules {
    fn check_response(&mut self, record: &Value, findings: &mut Findings) {
        let id = record.get("responseId").and_then(Value::as_str).map(str::to_owned);
        for field in ["responseId", "modelVersion"] {
            let there = record.get(field).is_some_and(Value::is_string);
            findings.require(there, "response", format!("`{field}` is not a string"));
        }
        let is_next = id.is_some() && id != self.response;
        if is_next {
            let message = "a response begins before the one before it has ended";
            findings.require(!self.open, "finish-reason-last", message);
            *self = Self { open: true, any: true, response: id, ..Self::default() };
        } else if !self.any {
            (self.open, self.any) = (true, true);
        }
    }

    fn check_counts(&mut self, record: &Value, findings: &mut Findings) {
        let Some(usage) = record.get("usageMetadata") else { return };
        for (name, before) in COUNTS.iter().zip(&mut self.counts) {
            let Some(count) = usage.get(name) else { continue };
            match count.as_u64() {
                Some(count) => {
                    let message = format!("`{name}` is less than before, and it is cumulative");
                    findings.require(count >= *before, "usage", message);
                    *before = count;
                }
                None => findings.add("usage", format!("`{name}` is not a number")),
            }
        }
    }

    fn check_candidate(&mut self, candidate: &Value, findings: &mut Findings) {
        let content = candidate.get("content").unwrap_or(&Value::Null);
        let role = content.get("role").and_then(Value::as_str).unwrap_or("model");
        findings.require(role == "model", "content", "the role of the content is not \"model\"");
        for part in content.get("parts").and_then(Value::as_array).into_iter().flatten() {
            let message = "a part follows the `finishReason`";
            findings.require(self.open, "finish-reason-last", message);
            self.check_part(part, findings);
        }
        let Some(reason) = candidate.get("finishReason") else { return };
        let known = reason.as_str().is_some_and(|reason| FINISH_REASONS.contains(&reason));
        findings.require(known, "finish-reason", format!("{reason} is not a finish reason"));
        let message = "code was sent, and its result was not";
        findings.require(!std::mem::take(&mut self.code), "code-result", message);
        self.open = false;
    }

    fn check_part(&mut self, part: &Value, findings: &mut Findings) {
        let data: Vec<_> = DATA.iter().filter(|name| part.get(name).is_some()).collect();
        // A part of another kind may be new.
        let message = format!("a part has several kinds of data: {data:?}");
        findings.require(data.len() <= 1, "one-kind-of-data", message);
        let text = part.get("text").is_none_or(Value::is_string);
        findings.require(text, "content", "the text of a part is not a string");
        if let Some(call) = part.get("functionCall") {
            let name = call.get("name").is_some_and(Value::is_string);
            findings.require(name, "call-fields", "the name of a call is not a string");
            let args = call.get("args").is_none_or(Value::is_object);
            findings.require(args, "call-fields", "the arguments of a call are not an object");
        }
        if part.get("executableCode").is_some() {
            self.code = true;
        }
        if part.get("codeExecutionResult").is_some() {
            let message = "the result of code that was not sent";
            findings.require(std::mem::take(&mut self.code), "code-result", message);
        }
    }
}
