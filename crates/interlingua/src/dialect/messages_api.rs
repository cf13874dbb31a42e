//! What Anthropic's Messages API and Claude Code have in common: Claude Code prints the counts and the
//! answers of server tools as the API sends them. It knows no record that contains them.

use crate::event::{Scope, ToolEnded, ToolStatus, Usage as Counts};
use crate::json::read;
use crate::json::{Json, Text, record};

record! {
    /// Counts of tokens. Input counts exclude cached tokens, and output includes reasoning.
    pub(super) struct Usage<'a> {
        input: number "input_tokens",
        cache_write: number "cache_creation_input_tokens",
        cache_read: number "cache_read_input_tokens",
        output: number "output_tokens",
        details: record<OutputDetails> "output_tokens_details",
    }
}

record! {
    /// A breakdown of the output tokens.
    pub(super) struct OutputDetails<'a> {
        thinking: number "thinking_tokens",
        _kind: text "type",
    }
}

record! {
    /// The result of a server tool that is one object, or the error in its place.
    struct ServerToolResult<'a> {
        kind: text "type",
        error_code: text "error_code",
        error_message: text "error_message",
        exit_code: integer "return_code",
        stdout: text "stdout",
        stderr: text "stderr",
    }
}

/// The counts, with their scope.
pub(super) fn counts(usage: Usage<'_>, scope: Scope) -> Counts<'_> {
    Counts {
        scope,
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage.output,
        reasoning: usage.details.and_then(|details| details.thinking),
        ..Counts::default()
    }
}

/// The answer to a call that the provider of the model ran.
pub(super) fn provider_answer<'a>(
    call: Option<Text<'a>>,
    output: Option<Json<'a>>,
    is_error: Option<bool>,
) -> ToolEnded<'a> {
    let result = output.as_ref().and_then(read::record_of::<ServerToolResult<'_>>);
    let result = result.unwrap_or_default();
    let in_place = result.kind.is_some_and(|kind| kind.to_plain().ends_with("_error"));
    let error = result.error_message.or(result.error_code).filter(|_| in_place);
    let error = error.map(Text::into_owned);
    let exit_code = result.exit_code;
    let failed = in_place || is_error == Some(true) || exit_code.is_some_and(|code| code != 0);
    // The output of a command is text, and the object around it its structured form.
    let printed = exit_code.map(|_| {
        let [stdout, stderr] = [result.stdout, result.stderr].map(Option::unwrap_or_default);
        Json::from(&Text::from(format!("{stdout}{stderr}")))
    });
    let (output, structured) = match printed {
        Some(printed) => (Some(printed), output),
        None => (output, None),
    };
    ToolEnded {
        call: call.unwrap_or_default(),
        status: if failed { ToolStatus::Failed } else { ToolStatus::Completed },
        exit_code,
        error,
        output,
        structured,
        ..ToolEnded::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_place_of_a_result_is_a_failure() {
        let output = r#"{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}"#;
        let output = Json::from_text(output.to_owned());
        let ended = provider_answer(Some(Text::plain("c")), output, None);
        assert_eq!(ended.status, ToolStatus::Failed);
        assert_eq!(ended.error, Some(Text::plain("max_uses_exceeded")));
        let output = Json::from_text(
            r#"{"type":"code_execution_result","return_code":1,"stdout":"a","stderr":"b"}"#
                .to_owned(),
        );
        let ended = provider_answer(None, output, None);
        assert_eq!((ended.status, ended.exit_code), (ToolStatus::Failed, Some(1)));
        assert_eq!(ended.output, Json::from_text(r#""ab""#.to_owned()));
        let output = Json::from_text(r#"{"type":"code_execution_result"}"#.to_owned());
        assert_eq!(provider_answer(None, output, None).status, ToolStatus::Completed);
        let list = Json::from_text(r#"[{"type":"text","text":"no"}]"#.to_owned());
        assert_eq!(provider_answer(None, list, Some(true)).status, ToolStatus::Failed);
    }
}
