//! What a command line would run, as far as its text shows: simple commands, their literal words
//! and their redirections.

/// The simple commands of a command line, wherever they stand in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Script {
    /// The commands that were found. The list is complete only if `unresolved` is absent.
    pub(crate) commands: Vec<SimpleCommand>,
    /// Why the line may run, or write, something that is not in the list.
    pub(crate) unresolved: Option<&'static str>,
}

/// A command with its arguments and redirections.
///
/// The redirections of a compound command, as in `{ a; b; } > file`, belong to a command without
/// words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SimpleCommand {
    /// The name of the command, and its arguments.
    pub(crate) words: Vec<Word>,
    /// Whether variables are assigned, before the command or instead of one.
    pub(crate) assigns: bool,
    /// The files that the shell itself opens for the command.
    pub(crate) redirections: Vec<Redirection>,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// The word is always this text, after the removal of quotes.
    Literal(String),
    /// The word depends on variables, files or the output of commands. It may become several words,
    /// or none; only the text before the first such part is known.
    Unresolved {
        /// The text before the first part that is not literal.
        prefix: String,
    },
}

/// A file that the shell opens for a command. Redirections that open none, or that open
/// `/dev/null`, are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Redirection {
    /// The command reads this file.
    Read(Word),
    /// The command writes this file, or appends to it.
    Write(Word),
}

impl Script {
    /// A line of which nothing is known.
    pub(super) fn unknown(reason: &'static str) -> Self {
        Self { commands: Vec::new(), unresolved: Some(reason) }
    }

    /// Notes that the list of commands may be incomplete. The first reason is kept.
    pub(super) fn mark_unresolved(&mut self, reason: &'static str) {
        self.unresolved.get_or_insert(reason);
    }
}

impl SimpleCommand {
    /// The words, if all of them are literal.
    pub(crate) fn literal_words(&self) -> Option<Vec<&str>> {
        self.words.iter().map(Word::literal).collect()
    }

    /// The name of the command, if it is literal.
    pub(crate) fn name(&self) -> Option<&str> {
        self.words.first().and_then(Word::literal)
    }

    /// The text that the command certainly starts with, with single spaces between its words.
    pub(crate) fn known_prefix(&self) -> String {
        let mut prefix = String::new();
        for (index, word) in self.words.iter().enumerate() {
            if index > 0 {
                prefix.push(' ');
            }
            match word {
                Word::Literal(text) => prefix.push_str(text),
                Word::Unresolved { prefix: known } => {
                    prefix.push_str(known);
                    break;
                }
            }
        }
        prefix
    }
}

impl Word {
    /// The text of the word, if it is literal.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Unresolved { .. } => None,
        }
    }
}
