//! What is given to an agent that has forgotten its session: the prompts, and what came of them.

use interlingua::dialect::{self, EncodeOptions};
use interlingua::event::Data;
use interlingua::{Entry, Writer};

use super::Logs;
use crate::log;
use crate::{Error, SessionId, SessionRecord};

/// The longest history, in bytes. Of a longer one, the end is kept.
const LONGEST: usize = 128 * 1024;

/// What introduces the history.
const INTRODUCTION: &str = "This continues an earlier conversation, of which you have no memory. This is what was said and \
                            done in it; the last turn may be cut off:";

/// The history of a session with these logs: that of the session which it continues comes first.
pub(super) fn of(record: &SessionRecord, logs: &Logs) -> Result<String, Error> {
    let mut history = Vec::new();
    let earlier = record.continues.as_ref().map(|earlier| (earlier, &*logs.earlier));
    for (id, lines) in earlier.into_iter().chain([(&record.id, &*logs.own)]) {
        write(record, id, lines, &mut history)?;
    }
    let history = String::from_utf8_lossy(&history);
    let start = history.ceil_char_boundary(history.len().saturating_sub(LONGEST));
    let cut = if start > 0 { "[the beginning is left out]\n" } else { "" };
    let kept = history.get(start..).unwrap_or_default().trim();
    Ok(format!("{INTRODUCTION}\n\n<history>\n{cut}{kept}\n</history>"))
}

/// Writes what happened in a session whose log has these entries, one per line.
fn write(
    record: &SessionRecord,
    id: &SessionId,
    lines: &[u8],
    history: &mut Vec<u8>,
) -> Result<(), Error> {
    let failed = |problem: interlingua::Error| Error::Failed(problem.to_string());
    let options = EncodeOptions { id_seed: Some(record.id_seed), ..EncodeOptions::default() };
    let dialect = dialect::named("text").map_err(failed)?;
    let mut writer = Writer::new(dialect, &options).map_err(failed)?;
    let mut prompt = None;
    for (number, line) in (0..).zip(lines.split(|byte| *byte == b'\n')) {
        if line.is_empty() {
            continue;
        }
        let damaged = |_| Error::Damaged { id: id.clone(), entry: number };
        let entry: Entry = serde_json::from_slice(line).map_err(damaged)?;
        match &entry.event.data {
            Data::HostState(state) => {
                let announced = log::announced(state).filter(|text| !text.is_empty());
                if let Some(text) = announced {
                    history.extend_from_slice(format!("\n\nThe user: {text}\n\n").as_bytes());
                    prompt = Some(text);
                }
            }
            // Some agents repeat their prompts, and some do not.
            Data::UserMessage(message) if prompt.as_deref() == Some(&*message.text.to_plain()) => {
                prompt = None;
                continue;
            }
            _ => {}
        }
        writer.write(entry.borrowed(), history);
    }
    writer.finish(history);
    Ok(())
}

#[cfg(test)]
mod tests {
    use interlingua::Origin;
    use interlingua::event::{Block, BlockKind, Event, UserMessage};
    use interlingua::json::Text;

    use super::*;
    use crate::IdempotencyKey;
    use crate::host::delivery::{self, QueuedPrompt};

    fn log(events: Vec<Event<'static>>) -> String {
        let entries = (0..).zip(events).map(|(sequence, event)| Entry {
            sequence,
            received_at: None,
            epoch: 0,
            origin: Origin::default(),
            event,
            raw: None,
        });
        let lines: Vec<_> = entries.map(|it| serde_json::to_string(&it).unwrap()).collect();
        lines.join("\n")
    }

    #[test]
    fn a_history_has_the_prompts_and_the_end_of_what_came_of_them() {
        let key = IdempotencyKey::new("k").unwrap();
        let prompt = QueuedPrompt::new(key, "Fill in the form.".to_owned());
        let text = |text: &str| {
            let (text, kind) = (Text::from(text.to_owned()), BlockKind::Text);
            Event::new(Block { text, kind, ..Block::default() })
        };
        let record = SessionRecord::new(SessionId::new("s").unwrap(), "copilot", 0);
        let repeated = UserMessage { text: Text::plain("Fill in the form."), ..<_>::default() };
        let repeated = Event::new(repeated);
        let of = |log: String| {
            let logs = Logs { own: log.into_bytes(), ..Logs::default() };
            of(&record, &logs).unwrap()
        };
        let history = of(log(vec![delivery::announcement(&prompt), repeated, text("I will.")]));
        assert_eq!(history.matches("Fill in the form.").count(), 1, "{history}");
        let (asked, said) = (history.find("The user: Fill in the form."), history.find("I will."));
        assert!(asked.is_some() && asked < said, "{history}");
        let history = of(log(vec![
            delivery::announcement(&prompt),
            text(&"ä".repeat(LONGEST)),
            text("The end."),
        ]));
        assert!(
            history.len() < LONGEST + 1024 && history.contains("The end."),
            "{}",
            history.len()
        );
        assert!(history.contains("[the beginning is left out]") && !history.contains("Fill in"));
    }
}
