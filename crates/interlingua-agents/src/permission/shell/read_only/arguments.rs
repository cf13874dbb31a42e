//! Separates options from operands, as getopt does, for options that are all known.

use crate::permission::names::Names;

/// The options that a command may have.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// The letters of short options without a value.
    pub(super) short: &'static str,
    /// The letters of short options with a value.
    pub(super) short_valued: &'static str,
    /// Long options without a value. An option that ends in `=` has a value, one that ends in `[=`
    /// may have one after a `=`.
    pub(super) long: Names,
    /// Whether a number may be an option: `head -20`.
    pub(super) number: bool,
}

/// The arguments of a command.
#[derive(Debug, Default)]
pub(super) struct Arguments<'w> {
    pub(super) operands: Vec<&'w str>,
    /// The options without their dashes.
    options: Vec<&'w str>,
    /// The values of options, with their names.
    values: Vec<(&'w str, &'w str)>,
}

impl<'w> Arguments<'w> {
    /// Reads arguments; `None` if there is an option that the command may not have.
    pub(super) fn read(words: &[&'w str], allowed: &Options) -> Option<Self> {
        let mut arguments = Self::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if word == "--" {
                arguments.operands.extend(words.by_ref());
            } else if let Some(long) = word.strip_prefix("--") {
                arguments.long(long, allowed, &mut words)?;
            } else if let Some(cluster) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                arguments.cluster(cluster, allowed, &mut words)?;
            } else {
                arguments.operands.push(word);
            }
        }
        Some(arguments)
    }

    /// Whether an option was given, by its name without dashes.
    pub(super) fn has(&self, option: &str) -> bool {
        self.options.contains(&option)
    }

    /// Whether no option was given.
    pub(super) fn has_no_options(&self) -> bool {
        self.options.is_empty()
    }

    /// The values of an option.
    pub(super) fn values(&self, option: &str) -> impl Iterator<Item = &'w str> {
        self.values.iter().filter(move |(name, _)| *name == option).map(|(_, value)| *value)
    }

    /// A long option, which must be spelled out.
    fn long(
        &mut self,
        option: &'w str,
        allowed: &Options,
        words: &mut impl Iterator<Item = &'w str>,
    ) -> Option<()> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        let known = allowed.long.iter().find(|known| known.trim_end_matches(['[', '=']) == name)?;
        match value {
            Some(value) if known.ends_with('=') => self.values.push((name, value)),
            Some(_) => return None,
            None if known.ends_with('=') && !known.ends_with("[=") => {
                self.values.push((name, words.next()?));
            }
            None => {}
        }
        self.options.push(name);
        Some(())
    }

    /// Short options after one dash.
    fn cluster(
        &mut self,
        cluster: &'w str,
        allowed: &Options,
        words: &mut impl Iterator<Item = &'w str>,
    ) -> Option<()> {
        if allowed.number && cluster.bytes().all(|byte| byte.is_ascii_digit()) {
            self.options.push("number");
            return Some(());
        }
        for (at, letter) in cluster.char_indices() {
            let (name, rest) = cluster.get(at..)?.split_at_checked(letter.len_utf8())?;
            if allowed.short.contains(letter) {
                self.options.push(name);
            } else if allowed.short_valued.contains(letter) {
                self.options.push(name);
                let value = if rest.is_empty() { words.next()? } else { rest };
                self.values.push((name, value));
                return Some(());
            } else {
                return None;
            }
        }
        Some(())
    }
}
