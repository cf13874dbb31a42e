//! Ids for calls to which the agent gave none.

/// Generates ids for calls to which the agent gave none.
#[derive(Debug, Default)]
pub(super) struct IdGenerator {
    /// Distinguishes them from the ids of other sessions.
    pub(super) tag: String,
    /// Earlier runs of the session are not known.
    pub(super) resumed: bool,
    /// Their prefix, where the protocol prescribes one.
    pub(super) prefix: Option<&'static str>,
    made: u64,
}

impl IdGenerator {
    /// The next id that is free.
    pub(super) fn next(&mut self, is_free: impl Fn(&str) -> bool) -> String {
        loop {
            self.made += 1;
            let (number, tag) = (self.made, &self.tag);
            let id = match self.prefix {
                Some(prefix) if !self.resumed => format!("{prefix}{number}"),
                Some(prefix) => format!("{prefix}{number}_{tag}"),
                None => format!("call_{tag}_{number}"),
            };
            if is_free(&id) {
                return id;
            }
        }
    }
}
