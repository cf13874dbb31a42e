//! What the encoders of the two AI SDK protocols share: the stream parts of a language model
//! (`ai-sdk`) and the chunks of a UI message (`ui-message`).
//!
//! Both have blocks with an id on every part, additional facts in `providerMetadata`, consumers
//! that reject values with the name of a prototype, and one `finish` with the totals of all turns.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::Output;
use super::content::answer_text;
use crate::event::{
    BlockKind, Data, ErrorClass, Outcome, Scope, Severity, ToolEnded, ToolStatus, TurnEnded, Usage,
    own_usage,
};
use crate::json::write::{self, Object};
use crate::json::{Json, Text};

/// Stands for the input of a client's call that never became known. It is no JSON, so that a client
/// does not run the call.
pub(crate) const UNKNOWN_INPUT: &str = "the input of this call is not known";

/// The kind of a block in these protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Reasoning,
    Unsupported,
}

impl Shape {
    /// The kind of a block; one that cannot be expressed is counted as a loss.
    pub(crate) fn of(kind: &BlockKind, out: &mut Output) -> Self {
        match kind {
            BlockKind::Text => return Self::Text,
            BlockKind::Reasoning => return Self::Reasoning,
            BlockKind::HiddenReasoning => out.lost("hidden reasoning"),
            BlockKind::Image => out.lost("pictures"),
            BlockKind::Other(_) => out.lost("blocks of an unknown kind"),
        }
        Self::Unsupported
    }

    pub(crate) fn start(self) -> &'static str {
        if self == Self::Text { "text-start" } else { "reasoning-start" }
    }

    pub(crate) fn delta(self) -> &'static str {
        if self == Self::Text { "text-delta" } else { "reasoning-delta" }
    }

    pub(crate) fn end(self) -> &'static str {
        if self == Self::Text { "text-end" } else { "reasoning-end" }
    }
}

/// Writes the id that the parts of a block share.
#[inline]
pub(crate) fn block_id(part: &mut Object<'_>, block: u64) {
    let out = part.name("id");
    out.extend_from_slice(b"\"b");
    write::number(out, block);
    out.push(b'"');
}

/// The additional facts of a part, in `providerMetadata.interlingua`. Only known facts are written.
///
/// The deltas of a block do not repeat them: consumers keep the last metadata of a block, and send
/// it back with the next prompt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts<'f> {
    /// The session of the part, by which the next run resumes it.
    pub(crate) session: Option<&'f Text<'f>>,
    /// The call whose sub-agent emitted it.
    pub(crate) parent: Option<&'f Text<'f>>,
    /// The provider's signature.
    pub(crate) signature: Option<&'f Text<'f>>,
    /// The status of a call, if no other field contains it.
    pub(crate) status: Option<&'f str>,
    /// The exit code of a command.
    pub(crate) exit_code: Option<i64>,
    /// A notice for the user, and its severity.
    pub(crate) notice: Option<(&'f Severity, &'f Text<'f>)>,
}

impl Facts<'_> {
    /// Writes the field, if any fact is known.
    pub(crate) fn write(&self, part: &mut Object<'_>) {
        let Self { session, parent, signature, status, exit_code, notice } = self;
        let texts = [session, parent, signature];
        let others = status.is_some() || exit_code.is_some() || notice.is_some();
        if !others && texts.into_iter().all(|text| text.is_none()) {
            return;
        }
        part.object("providerMetadata", |metadata| {
            metadata.object("interlingua", |facts| {
                facts.text_if("sessionId", *session).text_if("parentToolCallId", *parent);
                facts.text_if("signature", *signature);
                if let Some(status) = status {
                    facts.string("status", status);
                }
                if let Some(code) = exit_code {
                    facts.raw("exitCode", &code.to_string());
                }
                if let Some((severity, text)) = notice {
                    facts.string("severity", severity.as_str()).text("text", text);
                }
            });
        });
    }
}

/// Writes a value that consumers accept. To prevent prototype pollution, they reject a whole record
/// that contains the name of a prototype, so such a value is written as text.
pub(crate) fn harmless_json(part: &mut Object<'_>, name: &str, value: &Json<'_>) {
    if names_a_prototype(value) {
        part.string(name, value.get());
    } else {
        part.json(name, value);
    }
}

/// Whether a value makes consumers reject the record that it is in.
pub(crate) fn names_a_prototype(value: &Json<'_>) -> bool {
    if !value.is_object() && !value.is_array() {
        return false;
    }
    let bytes = value.get().as_bytes();
    let names = |word: &[u8]| memchr::memmem::find(bytes, word).is_some();
    // Values are long, and almost none contains the word that all such names share.
    let has_the_word = PROTO.find(bytes).is_some();
    has_the_word && (names(b"proto__\"") || (names(b"constructor\"") && names(b"prototype\"")))
        || escapes_letters(bytes)
}

/// The searcher for that word, built once.
static PROTO: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("proto"));
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u00"));

/// Whether a letter or an underscore is escaped, which can hide such a name.
fn escapes_letters(bytes: &[u8]) -> bool {
    ESCAPE.find_iter(bytes).any(|at| matches!(bytes.get(at + 4), Some(b'4'..=b'7')))
}

/// Whether an event contains nothing that is not written elsewhere. The end of a turn contains its
/// tokens, and a consumer that sums the records would count them twice.
pub(crate) fn is_redundant(data: &Data<'_>, parent: Option<&Text<'_>>) -> bool {
    match data {
        Data::Usage(usage) => usage.scope == Scope::Turn && parent.is_none(),
        Data::ToolProgress(progress) => {
            progress.output.as_ref().is_none_or(Text::is_empty) && progress.elapsed_ms.is_none()
        }
        _ => false,
    }
}

/// Whether a turn with this outcome is written as an error.
pub(crate) fn is_failure(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed | Outcome::TimedOut)
}

/// The error of a call as text, since consumers show it as text; and the number of blocks of its
/// output that are not text.
pub(crate) fn call_failure<'a>(ended: &'a ToolEnded<'_>) -> (Text<'a>, usize) {
    let (text, others) = answer_text(ended);
    let text = match ended.exit_code {
        _ if !text.is_empty() => text,
        Some(code) if code != 0 => Text::from(format!("Exit code: {code}")),
        _ => Text::plain(describe_status(&ended.status)),
    };
    (text, others)
}

/// The description of a call without output.
fn describe_status(status: &ToolStatus) -> &str {
    match status {
        ToolStatus::Completed => "",
        ToolStatus::Failed => "the call failed",
        ToolStatus::Denied => "the call was not permitted",
        ToolStatus::Cancelled => "the call was cancelled",
        ToolStatus::TimedOut => "the call took too long",
        ToolStatus::Abandoned => "the call was never answered",
        ToolStatus::Other(word) if word.is_empty() => "the call ended in no known way",
        ToolStatus::Other(word) => word,
    }
}

/// The stop reason of a turn as the model names it, else the outcome as the agent names it.
pub(crate) fn end_reason<'a>(ended: &'a TurnEnded<'_>) -> Option<&'a Text<'a>> {
    ended.stop_reason.as_ref().or(ended.reason.as_ref())
}

/// Why a turn failed, for a person to read.
pub(crate) fn failure<'a>(ended: &'a TurnEnded<'_>) -> Text<'a> {
    match &ended.cause {
        Some(cause) => cause.borrowed(),
        None if ended.outcome == Outcome::TimedOut => Text::plain("the turn took too long"),
        None => Text::plain("the turn failed, and the agent reported no reason"),
    }
}

/// The usage of all turns of a stream, and how the last of them ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    pub(crate) usage: Option<Usage<'static>>,
    /// The usage for each model, including that of sub-agents.
    by_model: Vec<Usage<'static>>,
    cost_usd: Option<f64>,
    duration_ms: Option<u64>,
    steps: Option<u64>,
    last: LastTurn,
}

/// How the last turn ended.
#[derive(Debug, Clone, Default)]
struct LastTurn {
    outcome: Option<Outcome>,
    /// The cause, if it is written here.
    cause: Option<Text<'static>>,
    class: Option<ErrorClass>,
    http_status: Option<u64>,
    /// The stop reason.
    word: Option<Text<'static>>,
    /// The structured answer.
    structured: Option<Json<'static>>,
}

impl Turns {
    /// Adds a turn; `cause` is why it ended, if that is to be written with the totals.
    pub(crate) fn add(
        &mut self,
        ended: &TurnEnded<'_>,
        cause: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if let Some(usage) = &ended.usage {
            let so_far = self.usage.take().unwrap_or_default();
            self.usage = Some(so_far.plus(&own_usage(usage.clone())));
        }
        for usage in &ended.by_model {
            match self.by_model.iter_mut().find(|known| known.model == usage.model) {
                Some(known) => *known = std::mem::take(known).plus(usage),
                None => self.by_model.push(own_usage(usage.clone())),
            }
        }
        if let Some(cost) = &ended.cost {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost.usd);
        }
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        };
        add(&mut self.duration_ms, ended.duration_ms);
        add(&mut self.steps, ended.steps);
        std::mem::replace(&mut self.last, LastTurn::of(ended, cause)).forget(out);
    }

    /// The finish reason, on which consumers act: they run their tools after `tool-calls`, and also
    /// after `stop`.
    pub(crate) fn finish_reason(&self, client_must_answer: bool) -> &'static str {
        match &self.last.outcome {
            Some(Outcome::Completed | Outcome::WaitingForClient) if client_must_answer => {
                "tool-calls"
            }
            Some(Outcome::Completed) => "stop",
            Some(Outcome::LimitReached) => "length",
            Some(Outcome::Refused) => "content-filter",
            Some(outcome) if is_failure(outcome) => "error",
            _ => "other",
        }
    }

    /// Writes the known facts of the turns, except their tokens.
    pub(crate) fn facts(&self, facts: &mut Object<'_>) {
        if let Some(outcome) = &self.last.outcome {
            facts.string("outcome", outcome.as_str());
        }
        facts.text_if("cause", self.last.cause.as_ref());
        if let Some(answer) = &self.last.structured {
            harmless_json(facts, "structured", answer);
        }
        if let Some(usd) = self.cost_usd.filter(|usd| usd.is_finite()) {
            // Rounding removes the floating-point noise of a sum.
            let usd = (usd * 1e8).round() / 1e8;
            facts.raw("costUsd", &usd.to_string());
        }
        facts.number_if("durationMs", self.duration_ms).number_if("steps", self.steps);
        if self.models_exceed_turns() {
            facts.objects("usageByModel", &self.by_model, write_usage_of_model);
        }
    }

    /// Writes the outcome of the last turn, for a protocol that has no other field for it.
    pub(crate) fn write_outcome(&self, facts: &mut Object<'_>) {
        let LastTurn { class, http_status, word, .. } = &self.last;
        if let Some(class) = class {
            facts.string("errorClass", class.as_str());
        }
        facts.number_if("httpStatus", *http_status).text_if("reason", word.as_ref());
    }

    /// Whether the usage for each model exceeds the usage of the turns.
    fn models_exceed_turns(&self) -> bool {
        match (self.by_model.as_slice(), &self.usage) {
            ([], _) => false,
            ([one], Some(all)) => {
                (one.input_total(), one.output) != (all.input_total(), all.output)
            }
            _ => true,
        }
    }
}

impl LastTurn {
    fn of(ended: &TurnEnded<'_>, cause: Option<&Text<'_>>) -> Self {
        let own = |text: &Text<'_>| text.clone().into_owned();
        Self {
            outcome: Some(ended.outcome.clone()),
            cause: cause.map(own),
            class: ended.class.clone(),
            http_status: ended.http_status,
            word: end_reason(ended).map(own),
            structured: ended.structured.clone().map(Json::into_owned),
        }
    }

    /// Counts what is lost because another turn followed. The cause of a failed turn is not lost,
    /// since it was written as an error.
    fn forget(self, out: &mut Output) {
        let failed = self.outcome.as_ref().is_some_and(is_failure);
        if self.cause.is_some() && !failed {
            out.lost("why a turn before the last one ended");
        }
    }
}

/// All input tokens; unknown if only the tokens of the cache were counted.
pub(crate) fn input_tokens(usage: &Usage<'_>) -> Option<u64> {
    usage.input.and(usage.input_total())
}

/// The output tokens that are not reasoning. Some agents do not count reasoning as output: if it
/// exceeds the output, the count of the text is unknown.
pub(crate) fn text_tokens(usage: &Usage<'_>) -> Option<u64> {
    usage.output?.checked_sub(usage.reasoning?)
}

fn write_usage_of_model(counts: &mut Object<'_>, usage: &Usage<'_>) {
    counts.text_if("model", usage.model.as_ref());
    counts.number_if("inputTokens", input_tokens(usage));
    counts.number_if("cacheReadTokens", usage.cache_read);
    counts.number_if("cacheWriteTokens", usage.cache_write);
    counts.number_if("outputTokens", usage.output);
    counts.number_if("reasoningTokens", usage.reasoning);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_with_the_name_of_a_prototype_is_written_as_text() {
        let harmful = |text: &str| names_a_prototype(&Json::from_text(text.to_owned()).unwrap());
        for text in [
            r#"{"__proto__":1}"#,
            r#"[{"a":{"__proto__":{}}}]"#,
            r#"{"_\u005fproto__":1}"#,
            r#"{"__\u0070roto__":1}"#,
            r#"{"constructor":{"prototype":{}}}"#,
        ] {
            assert!(harmful(text), "{text}");
        }
        for text in [r#"{"a":"\u003cb\u003e"}"#, r#"{"constructor":1}"#, r#""__proto__""#, "1"] {
            assert!(!harmful(text), "{text}");
        }
    }
}
