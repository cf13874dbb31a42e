//! What somebody wants an agent to do, checked before anything is started.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::Error;
use crate::permission::Mode;

/// What an agent is asked to do.
#[derive(Clone)]
pub struct Request {
    /// What to do, in the user's words.
    pub prompt: String,
    /// The model, in the agent's word for it.
    pub model: Option<String>,
    /// The folder to work in.
    pub folder: PathBuf,
    /// The session to go on with, by the agent's own id.
    pub resume: Option<String>,
    /// What the agent may do.
    pub mode: Mode,
    /// Variables to set for it.
    pub environment: Vec<(String, String)>,
    /// The agent's program, where it is not the one on the path.
    pub program: Option<PathBuf>,
    /// Flags of its own, passed on as they are.
    pub flags: Vec<String>,
    /// Ask for the protocol that an unattended run needs, even if it shows less.
    pub exec: bool,
    /// Read the agent's screen, which is a guess, and use no protocol.
    pub screen: bool,
}

/// Variables may be secrets: their names are shown, and nothing else.
impl std::fmt::Debug for Request {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        out.debug_struct("Request")
            .field("model", &self.model)
            .field("folder", &self.folder)
            .field("resume", &self.resume)
            .field("mode", &self.mode)
            .field("environment", &names)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

impl Request {
    /// A request with nothing but a prompt, for the folder that we are in.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            model: None,
            folder: PathBuf::from("."),
            resume: None,
            mode: Mode::default(),
            environment: Vec::new(),
            program: None,
            flags: Vec::new(),
            exec: false,
            screen: false,
        }
    }

    /// A variable, as the agent will see it.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        let set = self.environment.iter().rev().find(|(set, _)| set == name);
        set.map(|(_, value)| OsString::from(value)).or_else(|| std::env::var_os(name))
    }

    /// Finds what no agent could work with.
    pub fn check(&self) -> Result<(), Error> {
        if self.prompt.trim().is_empty() {
            return Err(Error::EmptyPrompt);
        }
        if !self.folder.is_dir() {
            return Err(Error::NoFolder(self.folder.clone()));
        }
        let words = [("model", &self.model), ("session", &self.resume)];
        for (what, word) in words {
            if let Some(word) = word
                && (word.is_empty() || word.starts_with('-') || word.contains(char::is_control))
            {
                return Err(Error::BadWord { what, word: word.clone() });
            }
        }
        for (name, _) in &self.environment {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(Error::BadWord { what: "variable", word: name.clone() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_agent_could_work_with_is_refused() {
        let fine = Request::new("do it");
        assert!(fine.check().is_ok());
        assert!(matches!(Request::new(" \n").check(), Err(Error::EmptyPrompt)));
        let nowhere = Request { folder: "/no/such/folder".into(), ..fine.clone() };
        assert!(matches!(nowhere.check(), Err(Error::NoFolder(_))));
        for word in ["", "-x", "a\nb"] {
            let model = Request { model: Some(word.to_owned()), ..fine.clone() };
            assert!(matches!(model.check(), Err(Error::BadWord { what: "model", .. })), "{word}");
        }
        let variable = Request { environment: vec![("a=b".into(), "c".into())], ..fine };
        assert!(matches!(variable.check(), Err(Error::BadWord { what: "variable", .. })));
    }

    #[test]
    fn a_variable_is_shown_without_its_value() {
        let environment = vec![("API_KEY".to_owned(), "hunter2".to_owned())];
        let shown = format!("{:?}", Request { environment, ..Request::new("do it") });
        assert!(shown.contains("API_KEY") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_prompt_may_look_like_a_flag() {
        assert!(Request::new("--help me").check().is_ok());
    }
}
