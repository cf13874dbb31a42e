//! What the two protocols of the AI SDK have in common: the stream parts of a language model
//! (`ai-sdk`) and the chunks of a UI message (`ui-message`).
//!
//! Both have blocks with an id on every part, facts beside a part in `providerMetadata`, consumers
//! that reject values which name a prototype, and one `finish` that sums up all turns.

use super::Output;
use super::content::answer_text;
use crate::event::{BlockKind, Outcome, Severity, ToolEnded, TurnEnded, Usage, own_usage};
use crate::json::write::{self, Object};
use crate::json::{Json, Text};

/// What a block is in these protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Reasoning,
    Unsayable,
}

impl Shape {
    /// What a block is; counts one that cannot be said.
    pub(crate) fn of(kind: &BlockKind, out: &mut Output) -> Self {
        match kind {
            BlockKind::Text => return Self::Text,
            BlockKind::Reasoning => return Self::Reasoning,
            BlockKind::HiddenReasoning => out.lost("hidden reasoning"),
            BlockKind::Image => out.lost("picture"),
            BlockKind::Other(_) => out.lost("block of an unknown kind"),
        }
        Self::Unsayable
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

/// The field by which the parts of a block belong together.
#[inline]
pub(crate) fn block_id(part: &mut Object<'_>, block: u64) {
    let out = part.name("id");
    out.extend_from_slice(b"\"b");
    write::number(out, block);
    out.push(b'"');
}

/// What a part says beyond its own fields: `providerMetadata.interlingua`. Facts that are there are
/// written.
///
/// The pieces of a block do not repeat them: of a block, consumers keep what was said last. They send
/// what they kept back with the next prompt.
#[derive(Debug, Default)]
pub(crate) struct Facts<'f> {
    /// The session that the part is of, by which the next run finds it.
    pub(crate) session: Option<&'f Text<'f>>,
    /// The call whose sub-agent says it.
    pub(crate) parent: Option<&'f Text<'f>>,
    /// What the provider signed it with.
    pub(crate) signature: Option<&'f Text<'f>>,
    /// How a call went, where nothing else says it.
    pub(crate) status: Option<&'f str>,
    /// The exit code of a command.
    pub(crate) exit_code: Option<i64>,
    /// What a person should know, and how much it matters.
    pub(crate) notice: Option<(&'f Severity, &'f Text<'f>)>,
}

impl Facts<'_> {
    /// Writes the field, if there is a fact.
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

/// A value that consumers accept: one that names a prototype makes them reject the whole record, lest
/// it change theirs. As text it does no harm.
pub(crate) fn harmless_json(part: &mut Object<'_>, name: &str, value: &Json<'_>) {
    if names_a_prototype(value) {
        part.string(name, value.get());
    } else {
        part.json(name, value);
    }
}

fn names_a_prototype(value: &Json<'_>) -> bool {
    if !value.is_object() && !value.is_array() {
        return false;
    }
    let bytes = value.get().as_bytes();
    let names = |word: &[u8]| memchr::memmem::find(bytes, word).is_some();
    names(b"proto__\"")
        || (names(b"constructor\"") && names(b"prototype\""))
        || hides_letters(bytes)
}

/// Whether a letter or an underscore is written as an escape, which only hides what a name is.
fn hides_letters(bytes: &[u8]) -> bool {
    memchr::memmem::find_iter(bytes, b"\\u00")
        .any(|at| matches!(bytes.get(at + 4), Some(b'4'..=b'7')))
}

/// Whether a turn that ended so is told as an error.
pub(crate) fn is_failure(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed | Outcome::TimedOut)
}

/// What went wrong with a call, as text, since consumers show it as that; and the number of blocks of
/// its output that are none.
pub(crate) fn call_failure<'a>(ended: &'a ToolEnded<'_>) -> (Text<'a>, usize) {
    let (text, others) = answer_text(ended);
    let text = match ended.exit_code {
        _ if !text.is_empty() => text,
        Some(code) if code != 0 => Text::from(format!("Exit code: {code}")),
        _ => Text::plain(ended.status.as_str()),
    };
    (text, others)
}

/// Why a turn failed, for a person to read.
pub(crate) fn failure<'a>(ended: &'a TurnEnded<'_>) -> Text<'a> {
    match &ended.cause {
        Some(cause) => cause.borrowed(),
        None if ended.outcome == Outcome::TimedOut => Text::plain("the turn took too long"),
        None => Text::plain("the turn failed, and the agent does not say why"),
    }
}

/// What all turns of a stream used, and how the last of them ended.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    pub(crate) usage: Option<Usage<'static>>,
    cost_usd: Option<f64>,
    duration_ms: Option<u64>,
    outcome: Option<Outcome>,
    /// Why the last turn ended, where no part of its own says so.
    cause: Option<Text<'static>>,
}

impl Turns {
    /// Adds a turn; `cause` is why it ended, where no part of its own says so.
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
        if let Some(cost) = &ended.cost {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost.usd);
        }
        if let Some(duration) = ended.duration_ms {
            self.duration_ms = Some(self.duration_ms.unwrap_or(0).saturating_add(duration));
        }
        if self.cause.is_some() {
            out.lost("why a turn before the last one ended");
        }
        self.outcome = Some(ended.outcome.clone());
        self.cause = cause.map(|cause| cause.clone().into_owned());
    }

    /// The word that consumers act on: they run their tools after `tool-calls`, and after `stop` too.
    pub(crate) fn finish_reason(&self, client_must_answer: bool) -> &'static str {
        match &self.outcome {
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

    /// What is known of the turns beside the tokens.
    pub(crate) fn facts(&self, facts: &mut Object<'_>) {
        if let Some(outcome) = &self.outcome {
            facts.string("outcome", outcome.as_str());
        }
        facts.text_if("cause", self.cause.as_ref());
        if let Some(usd) = self.cost_usd.filter(|usd| usd.is_finite()) {
            // A sum leaves noise behind the digits that money is told in.
            let usd = (usd * 1e8).round() / 1e8;
            facts.raw("costUsd", &usd.to_string());
        }
        facts.number_if("durationMs", self.duration_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_prototype_is_told_as_text() {
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
