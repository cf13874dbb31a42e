//! Subcommands of git that only read.
//!
//! git runs programs that the repository's configuration names: a file system monitor, external
//! diffs, filters, a pager. That configuration is not part of what is cloned, and edits of `.git`
//! are asked for. A bare repository inside of a clone is: git would trust its configuration if it
//! ran in that folder, or below it.

use std::path::Path;

use super::View;
use super::arguments::{Arguments, Options};
use crate::permission::names::Names;
use crate::permission::paths::{self, Place, Reader};

/// A subcommand with the options that it may have.
struct Subcommand {
    name: &'static str,
    options: Options,
    operands: Operands,
}

enum Operands {
    None,
    /// Revisions, and paths in the repository.
    Revisions,
    /// Patterns, but only if the option `list` is given: otherwise something would be created.
    Listed,
    /// Only this word.
    Word(&'static str),
}

const LOG: Options = Options {
    short: "pswbizMCv",
    short_valued: "nUSG",
    long: Names(
        "\
                oneline graph decorate[= no-decorate all branches[= tags[= remotes[= stat[= \
                shortstat numstat name-only name-status summary patch no-patch max-count= \
                skip= since= until= after= before= author= committer= grep= \
                regexp-ignore-case pretty[= format= abbrev-commit abbrev[= no-merges merges \
                first-parent reverse follow date= color[= no-color topo-order date-order \
                cached staged unified= word-diff[= ignore-all-space ignore-space-change \
                ignore-blank-lines no-ext-diff no-textconv check raw minimal patience \
                histogram no-renames find-renames[= exit-code quiet diff-filter= no-prefix \
                merge-base left-right cherry-pick",
    ),
    number: true,
};

const fn options(short: &'static str, long: &'static str) -> Options {
    Options { short, short_valued: "", long: Names(long), number: false }
}

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "blame",
        options: Options {
            short: "wlsetfn",
            short_valued: "L",
            long: Names("date= porcelain"),
            number: false,
        },
        operands: Operands::Revisions,
    },
    Subcommand {
        name: "branch",
        options: options(
            "arvl",
            "list all remotes verbose show-current merged[= \
             no-merged[= contains[= sort= format= color[= no-color",
        ),
        operands: Operands::Listed,
    },
    Subcommand {
        name: "describe",
        options: options("", "tags always dirty[= long all abbrev[= exact-match"),
        operands: Operands::Revisions,
    },
    Subcommand { name: "diff", options: LOG, operands: Operands::Revisions },
    Subcommand { name: "log", options: LOG, operands: Operands::Revisions },
    Subcommand {
        name: "ls-files",
        options: options(
            "comdstvz",
            "cached others modified deleted stage exclude-standard full-name",
        ),
        operands: Operands::Revisions,
    },
    Subcommand {
        name: "ls-tree",
        options: options("rdtlz", "name-only name-status long full-tree full-name"),
        operands: Operands::Revisions,
    },
    Subcommand {
        name: "merge-base",
        options: options("a", "all is-ancestor fork-point"),
        operands: Operands::Revisions,
    },
    // With the addresses, it would show the passwords in them.
    Subcommand { name: "remote", options: options("", ""), operands: Operands::None },
    Subcommand {
        name: "rev-parse",
        options: options(
            "q",
            "show-toplevel abbrev-ref[= short[= verify \
             quiet is-inside-work-tree git-dir show-prefix symbolic-full-name",
        ),
        operands: Operands::Revisions,
    },
    Subcommand { name: "show", options: LOG, operands: Operands::Revisions },
    Subcommand { name: "stash", options: options("", ""), operands: Operands::Word("list") },
    Subcommand {
        name: "status",
        options: Options {
            short: "sbvz",
            short_valued: "",
            long: Names(
                "\
                short branch porcelain[= long verbose untracked-files[= ignored[= show-stash \
                ahead-behind no-ahead-behind renames no-renames null",
            ),
            number: false,
        },
        operands: Operands::Revisions,
    },
    Subcommand {
        name: "tag",
        options: options("l", "list sort= contains[= points-at[= merged[="),
        operands: Operands::Listed,
    },
    Subcommand { name: "worktree", options: options("", ""), operands: Operands::Word("list") },
];

pub(super) fn is_read_only(words: &[&str], view: &View<'_>) -> bool {
    let words = words.strip_prefix(&["--no-pager"]).unwrap_or(words);
    let Some((name, words)) = words.split_first() else { return false };
    let Some(subcommand) = SUBCOMMANDS.iter().find(|subcommand| subcommand.name == *name) else {
        return false;
    };
    let Some(arguments) = Arguments::read(words, &subcommand.options) else { return false };
    let mut forms =
        ["format", "pretty", "sort"].into_iter().flat_map(|name| arguments.values(name));
    let signature = forms.any(shows_signature);
    let bare = paths::may_find_bare_repository(view.base);
    let compares_folders = subcommand.name == "diff" && compares_folders(&arguments, view);
    !signature && !bare && !compares_folders && operands(&subcommand.operands, &arguments, view)
}

/// Whether a format runs gpg, by `%G` with its variants, or by a field such as `%(signature)`.
fn shows_signature(value: &str) -> bool {
    let after = value.split('%').skip(1);
    let mut fields = after.map(|field| field.trim_start_matches(['+', '-', ' ']));
    value.contains("signature") || fields.any(|field| field.starts_with('G'))
}

/// Whether `git diff` may compare two folders as `diff -r` does, or a file with one of a folder, and show a
/// secret in them.
fn compares_folders(arguments: &Arguments<'_>, view: &View<'_>) -> bool {
    let [left, right] = &*arguments.operands else { return false };
    let places = [left, right].map(|path| view.place(path));
    let is = |place: &Place, is: fn(&Path) -> bool| place.resolved.as_deref().is_some_and(is);
    places.iter().all(|place| is(place, Path::exists))
        && places.iter().any(|place| is(place, Path::is_dir))
        && !places.iter().all(|place| place.is_readable_by(Reader::Links))
}

fn operands(allowed: &Operands, arguments: &Arguments<'_>, view: &View<'_>) -> bool {
    let given = &*arguments.operands;
    match allowed {
        Operands::None => given.is_empty(),
        Operands::Word(word) => given == [*word] && arguments.has_no_options(),
        Operands::Listed => given.is_empty() || arguments.has("list") || arguments.has("l"),
        Operands::Revisions => given.iter().all(|operand| is_harmless_revision(operand, view)),
    }
}

/// A revision, a path, or a path in a revision. Outside of a repository, or for paths outside of it,
/// `git diff` compares any two files.
fn is_harmless_revision(operand: &str, view: &View<'_>) -> bool {
    let path = operand.rsplit(':').next().unwrap_or(operand);
    path.is_empty() || (view.place(path).is_readable() && view.place(operand).is_readable())
}
