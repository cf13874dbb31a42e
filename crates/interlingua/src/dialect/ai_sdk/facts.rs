//! What a part says beyond its own fields: `providerMetadata.interlingua`.
//!
//! Consumers keep it with the part, and send what they kept back with the next prompt.

use crate::event::Severity;
use crate::json::Text;
use crate::json::write::Object;

/// The facts; those that are there are written.
///
/// The pieces of a block do not repeat them: of a block, consumers keep what was said last.
#[derive(Debug, Default)]
pub(super) struct Facts<'f> {
    /// The session that the part is of, by which the next run finds it.
    pub(super) session: Option<&'f Text<'f>>,
    /// The call whose sub-agent says it.
    pub(super) parent: Option<&'f Text<'f>>,
    /// What the provider signed it with.
    pub(super) signature: Option<&'f Text<'f>>,
    /// How a call went, where `isError` does not say it.
    pub(super) status: Option<&'f str>,
    /// The exit code of a command.
    pub(super) exit_code: Option<i64>,
    /// What a person should know, and how much it matters.
    pub(super) notice: Option<(&'f Severity, &'f Text<'f>)>,
}

impl Facts<'_> {
    /// Writes the field, if there is a fact.
    pub(super) fn write(&self, part: &mut Object<'_>) {
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
