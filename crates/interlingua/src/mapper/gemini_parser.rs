//! What Gemini prints, as the unified AgentEvents of a team's chat.

use super::lines;
use crate::Exit;
use crate::dialect::{EncodeOptions, Team, agent_event, gemini};
use crate::translate::{Options, Translator};

/// Parses Gemini's stream into AgentEvents, one JSON object each.
///
/// A call to `write_todos` is a `todo_list` and nothing else; every other tool is started and
/// completed.
///
/// ```
/// use interlingua::dialect::Team;
/// use interlingua::mapper::GeminiParser;
///
/// let mut parser = GeminiParser::new(Team::default());
/// let events = parser.parse_chunk(
///     br#"{"type":"tool_use","tool_name":"write_todos","tool_id":"call_1","parameters":{"todos":[]}}
/// "#,
/// );
/// assert!(events.last().is_some_and(|event| event.contains(r#""type":"todo_list""#)));
/// ```
#[derive(Debug)]
pub struct GeminiParser {
    team: Team,
    translator: Option<Translator>,
    streams: u64,
}

impl GeminiParser {
    /// A parser for one member of a team.
    pub fn new(team: Team) -> Self {
        let mut parser = Self { team, translator: None, streams: 0 };
        parser.reset();
        parser
    }

    /// Takes a chunk; gives the events that are now known.
    pub fn parse_chunk(&mut self, chunk: &[u8]) -> Vec<String> {
        let Some(translator) = &mut self.translator else { return Vec::new() };
        without_line_feeds(lines(translator.push(chunk, None)))
    }

    /// Says that no more will come; gives the last events, and begins anew.
    pub fn flush(&mut self) -> Vec<String> {
        let Some(translator) = self.translator.take() else { return Vec::new() };
        self.reset();
        without_line_feeds(lines(&translator.finish(&Exit::default(), None).bytes))
    }

    /// Forgets everything but the team. Ids are not used again.
    pub fn reset(&mut self) {
        self.streams += 1;
        let encode = EncodeOptions {
            team: self.team.clone(),
            id_seed: Some(self.streams),
            ..EncodeOptions::default()
        };
        let options = Options { encode, ..Options::default() };
        let (from, to) = (&gemini::DIALECT, &agent_event::DIALECT);
        self.translator = Translator::new(from.into(), to, options).ok();
    }
}

fn without_line_feeds(mut lines: Vec<String>) -> Vec<String> {
    for line in &mut lines {
        line.truncate(line.trim_end_matches('\n').len());
    }
    lines
}
