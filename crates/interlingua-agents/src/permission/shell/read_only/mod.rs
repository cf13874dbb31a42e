//! Commands that only read, and only inside of the folder.
//!
//! The list is small on purpose, and each command has a list of the options that it may have, not
//! of those that it may not: an option that is not listed is one that was not examined. All
//! words must be literal. Paths must be inside of the folder, with links followed, and not be
//! secrets; a command that reads whole folders must not find a secret in them.

mod arguments;
mod commands;
mod git;

use std::path::Path;

use super::script::{SimpleCommand, Word};
use crate::permission::names::Names;
use crate::permission::paths::{Folder, Place, Reader, may_name_git};
use arguments::Arguments;
use commands::Operands;

/// The folder that bounds what may be read, and the folder in which the command runs.
pub(crate) struct View<'v> {
    pub(crate) folder: &'v Folder,
    pub(crate) base: &'v Path,
}

impl View<'_> {
    fn place(&self, path: &str) -> Place {
        self.folder.place(self.base, path)
    }

    /// Whether the contents of a file may be read. `-` is the standard input.
    fn may_read(&self, path: &str) -> bool {
        path == "-" || self.place(path).is_readable()
    }

    /// Whether what is below a path may be read.
    fn may_read_below(&self, path: &str, reader: Reader) -> bool {
        path == "-" || self.place(path).is_readable_by(reader)
    }
}

/// Whether a command only reads, and only what may be read. Its redirections are judged elsewhere.
pub(crate) fn is_read_only(command: &SimpleCommand, view: &View<'_>) -> bool {
    // Without operands, many commands read the folder in which they run.
    if command.assigns || !view.place(".").is_readable() {
        return false;
    }
    let Some(words) = command.literal_words() else { return false };
    let Some((name, words)) = words.split_first() else { return false };
    match *name {
        "cd" => stays(command, view.base),
        // Prints where a program is; without the option, it would run it.
        "command" => matches!(words, ["-v" | "-V", names @ ..] if no_options(names)),
        "find" => finds(words, view),
        "git" => git::is_read_only(words, view),
        "sed" => prints_lines(words, view),
        name => {
            commands::COMMANDS.iter().find(|command| command.name == name).is_some_and(|command| {
                let read = Arguments::read(words, &command.options);
                read.is_some_and(|arguments| operands(&command.operands, &arguments, view))
            })
        }
    }
}

/// Whether files of the folder decide what a command does: the configuration of a repository, or ignore rules.
pub(crate) fn obeys_files(command: &SimpleCommand) -> bool {
    let name = command.words.first().and_then(Word::literal);
    name.is_some_and(|name| matches!(name, "git" | "rg"))
}

/// Whether `cd` goes to the folder in which the command runs anyway.
pub(crate) fn stays(command: &SimpleCommand, base: &Path) -> bool {
    let target = match command.literal_words().as_deref() {
        // Shells forget the name before `..`, also if it is a link.
        Some(["cd", target]) if !target.starts_with('-') && !target.contains("..") => {
            base.join(target)
        }
        _ => return false,
    };
    let same = target.canonicalize().ok();
    same.is_some() && same == base.canonicalize().ok()
}

fn no_options(words: &[&str]) -> bool {
    !words.iter().any(|word| word.starts_with('-'))
}

fn operands(allowed: &Operands, arguments: &Arguments<'_>, view: &View<'_>) -> bool {
    let given = &arguments.operands;
    let all_readable = |paths: &[&str]| paths.iter().all(|path| view.may_read(path));
    match allowed {
        Operands::None => given.is_empty(),
        Operands::Text => true,
        Operands::Format => given.iter().all(|operand| operand.starts_with('+')),
        Operands::Paths => all_readable(given),
        Operands::OnePath => given.len() <= 1 && all_readable(given),
        Operands::Tree => given.iter().all(|path| view.may_read_below(path, Reader::Links)),
        Operands::PatternAndPaths { recursive } => {
            let pattern_given = arguments.has("e") || arguments.has("regexp");
            let paths = match given.split_first() {
                Some((_, paths)) if !pattern_given && !arguments.has("files") => paths,
                Some(_) => given,
                None if pattern_given || arguments.has("files") => &[],
                None => return false,
            };
            let searches_folders =
                recursive.is_none_or(|option| arguments.has(option) || arguments.has("recursive"));
            let paths = if searches_folders && paths.is_empty() { &["."] } else { paths };
            let reader = searcher(recursive.is_none(), arguments);
            if searches_folders {
                paths.iter().all(|path| view.may_read_below(path, reader))
            } else {
                all_readable(paths)
            }
        }
    }
}

/// What `grep` or `rg` reads in a folder.
fn searcher(is_rg: bool, arguments: &Arguments<'_>) -> Reader {
    if !is_rg {
        let skips_git = arguments.values("exclude-dir").any(|name| name == ".git");
        return if skips_git { Reader::OutsideGit } else { Reader::Everything };
    }
    let names = ["g", "glob", "iglob"];
    let mut globs = names.iter().flat_map(|name| arguments.values(name));
    if globs.any(|glob| !glob.starts_with('!') && may_name_git(glob)) {
        Reader::Everything
    } else {
        Reader::IgnoreRules
    }
}

/// `sed -n 1,20p FILE…`
fn prints_lines(words: &[&str], view: &View<'_>) -> bool {
    super::indirect::is_harmless_sed(words) && words.iter().skip(2).all(|path| view.may_read(path))
}

/// Tests of `find` with one argument, which is text.
const FIND_WITH_ARGUMENT: Names = Names(
    "\
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype \
    -maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -user -group -perm \
    -links -inum -printf",
);

/// Tests, actions and operators of `find` without an argument.
const FIND_ALONE: Names = Names(
    "\
    -print -print0 -ls -prune -quit -not -and -or -a -o ! ( ) , -depth -xdev -mount -empty \
    -readable -writable -executable -true -false -nouser -nogroup",
);

/// `find` with tests that only look at names and attributes. Names of secrets are not secret.
fn finds(words: &[&str], view: &View<'_>) -> bool {
    let starts_expression = |word: &&str| word.starts_with(['-', '(', '!']);
    let (paths, expression): (&[&str], &[&str]) = match words.iter().position(starts_expression) {
        Some(at) => words.split_at(at),
        None => (words, &[]),
    };
    let mut expression = expression.iter();
    while let Some(word) = expression.next() {
        if FIND_WITH_ARGUMENT.contains(word) {
            if expression.next().is_none() {
                return false;
            }
        } else if !FIND_ALONE.contains(word) {
            return false;
        }
    }
    paths.iter().all(|path| view.may_read(path))
}

#[cfg(test)]
mod tests;
