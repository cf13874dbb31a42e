//! Reads goose's banner, the only part of the output that states the session, model and directory.
//!
//! ```text
//!     __( O)>  ● new session · openai gpt-4o
//!    \____)    20261115_18 · /home/me/project
//!      L L     goose is ready
//! ```

use crate::event::SessionStarted;
use crate::json::Text;

/// The meaning of a line that is not a record.
#[derive(Debug)]
pub(super) enum Prose<'a> {
    /// The line of the banner that states the session.
    Session(SessionStarted<'a>),
    /// Another line of the banner.
    Banner,
    /// Anything else.
    Other,
}

/// The facts of the banner so far.
#[derive(Debug, Default)]
pub(super) struct Banner {
    model: Option<String>,
}

impl Banner {
    /// Reads a line that is not a record.
    pub(super) fn line<'a>(&mut self, line: &'a str) -> Prose<'a> {
        let line = line.trim();
        if let Some((_, first)) = line.split_once("( O)>") {
            // The provider, the model, and sometimes the role of the model: `(lead)`.
            let names = first.split_once(" · ").map_or("", |(_, names)| names);
            self.model = names.split_whitespace().nth(1).map(str::to_owned);
            return Prose::Banner;
        }
        let second = line.strip_prefix("\\____)").and_then(|second| second.split_once(" · "));
        if let Some((id, cwd)) = second {
            return Prose::Session(SessionStarted {
                id: Some(Text::plain(id.trim())),
                model: self.model.take().map(Text::from),
                cwd: Some(Text::plain(cwd.trim())),
                agent: Some(Text::plain("goose")),
                ..SessionStarted::default()
            });
        }
        if line.starts_with("L L ") { Prose::Banner } else { Prose::Other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_states_the_session() {
        let mut banner = Banner::default();
        let first = banner.line("    __( O)>  ● new session · openai gpt-4o");
        assert!(matches!(first, Prose::Banner));
        let Prose::Session(session) = banner.line("   \\____)    20261115_18 · /srv/my project")
        else {
            panic!("the second line states the session");
        };
        assert_eq!(session.id.unwrap(), "20261115_18");
        assert_eq!(session.model.unwrap(), "gpt-4o");
        assert_eq!(session.cwd.unwrap(), "/srv/my project");
        assert!(matches!(banner.line("     L L     goose is ready"), Prose::Banner));
        banner.line("__( O)>  ● resuming session · anthropic claude-sonnet-4 (lead)");
        assert_eq!(banner.model.as_deref(), Some("claude-sonnet-4"));
        assert!(matches!(banner.line("anything else"), Prose::Other));
    }
}
