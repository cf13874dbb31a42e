//! The commands that only read, with the options that they may have.
//!
//! Left out are, among others: options that write (`sort -o`, `tree -o`), that run programs
//! (`rg --pre`, `diff -l`), that read a list of further files (`wc --files0-from`, `grep -f`), that
//! follow links (`grep -R`, `rg -L`, `find -L`), and that wait forever (`tail -f`).

use super::arguments::Options;
use crate::permission::names::Names;

/// A command that only reads.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) name: &'static str,
    pub(super) options: Options,
    pub(super) operands: Operands,
}

/// What the operands of a command are.
#[derive(Debug)]
pub(super) enum Operands {
    /// There may be none.
    None,
    /// Text that names no file.
    Text,
    /// Text that starts with `+`; anything else would set the clock.
    Format,
    /// Files, or folders whose names are listed.
    Paths,
    /// One file; a second one would be written.
    OnePath,
    /// Files, or folders that are read completely, with what their links lead to.
    Tree,
    /// A pattern, unless an option has it, and then files.
    PatternAndPaths {
        /// The option that makes it read folders completely; it always does without one.
        recursive: Option<&'static str>,
    },
}

const fn command(name: &'static str, operands: Operands, options: Options) -> Command {
    Command { name, options, operands }
}

const fn short(short: &'static str) -> Options {
    Options { short, short_valued: "", long: Names(""), number: false }
}

const GREP: Options = Options {
    short: "ivnclLohHswxzEFGPqarI",
    short_valued: "emABC",
    long: Names(
        "\
                ignore-case invert-match line-number count files-with-matches \
                files-without-match only-matching no-filename with-filename no-messages \
                word-regexp line-regexp extended-regexp fixed-strings perl-regexp quiet text \
                recursive regexp= max-count= after-context= before-context= context= color[= \
                colour[= include= exclude= exclude-dir= null",
    ),
    number: true,
};

const SEARCH: Operands = Operands::PatternAndPaths { recursive: Some("r") };

pub(super) const COMMANDS: &[Command] = &[
    command(":", Operands::Text, short("")),
    command("arch", Operands::None, short("")),
    command(
        "basename",
        Operands::Text,
        Options { short: "az", short_valued: "s", long: Names(""), number: false },
    ),
    command(
        "cat",
        Operands::Paths,
        Options {
            short: "AbeEnstTuv",
            short_valued: "",
            long: Names(
                "\
                number number-nonblank show-all show-ends show-tabs squeeze-blank",
            ),
            number: false,
        },
    ),
    command(
        "cut",
        Operands::Paths,
        Options {
            short: "nsz",
            short_valued: "bcdf",
            long: Names(
                "\
                bytes= characters= delimiter= fields= complement only-delimited \
                output-delimiter=",
            ),
            number: false,
        },
    ),
    command(
        "date",
        Operands::Format,
        Options {
            short: "uRI",
            short_valued: "",
            long: Names("utc universal iso-8601[= rfc-3339= rfc-email date="),
            number: false,
        },
    ),
    command(
        "diff",
        Operands::Tree,
        Options {
            short: "uqabBwiEtTyscerNp",
            short_valued: "UCW",
            long: Names(
                "\
                unified[= brief recursive new-file text ignore-all-space ignore-space-change \
                ignore-blank-lines ignore-case side-by-side color[= suppress-common-lines \
                width= report-identical-files",
            ),
            number: false,
        },
    ),
    command("dirname", Operands::Text, short("z")),
    command(
        "du",
        Operands::Paths,
        Options {
            short: "shackmSxb0",
            short_valued: "d",
            long: Names(
                "\
                summarize human-readable all total max-depth= apparent-size bytes",
            ),
            number: false,
        },
    ),
    command("echo", Operands::Text, short("neE")),
    command("egrep", SEARCH, GREP),
    command("false", Operands::None, short("")),
    command("fgrep", SEARCH, GREP),
    command(
        "file",
        Operands::Paths,
        Options {
            short: "bhi",
            short_valued: "",
            long: Names("brief mime mime-type mime-encoding no-dereference"),
            number: false,
        },
    ),
    command("grep", SEARCH, GREP),
    command(
        "head",
        Operands::Paths,
        Options {
            short: "qvz",
            short_valued: "nc",
            long: Names("lines= bytes= quiet silent verbose"),
            number: true,
        },
    ),
    command("hostname", Operands::None, short("")),
    command("id", Operands::None, short("ugGnr")),
    command(
        "ls",
        Operands::Paths,
        Options {
            short: "aAlhF1dtrSRgGonpsiCxmQkucUvXqbB",
            short_valued: "",
            long: Names(
                "\
                all almost-all human-readable classify directory recursive reverse size \
                inode full-time group-directories-first color[= sort= time= time-style= \
                format=",
            ),
            number: false,
        },
    ),
    command(
        "nl",
        Operands::Paths,
        Options { short: "p", short_valued: "bhfnsvwil", long: Names(""), number: false },
    ),
    command("nproc", Operands::None, short("")),
    command("pwd", Operands::None, short("LP")),
    command("readlink", Operands::Paths, short("fenmz")),
    command("realpath", Operands::Paths, short("emsz")),
    command(
        "rg",
        Operands::PatternAndPaths { recursive: None },
        Options {
            short: "inclvwsSFxoHNIPUp0",
            short_valued: "eABCmgtTMjdr",
            long: Names(
                "\
                ignore-case line-number no-line-number count count-matches \
                files-with-matches files-without-match invert-match word-regexp line-regexp \
                case-sensitive smart-case fixed-strings only-matching with-filename \
                no-filename heading no-heading multiline pcre2 pretty column vimgrep json \
                stats trim no-messages files regexp= glob= iglob= type= type-not= max-count= \
                max-depth= max-columns= max-filesize= after-context= before-context= \
                context= color= sort= sortr= replace= threads= no-config",
            ),
            number: false,
        },
    ),
    command(
        "seq",
        Operands::Text,
        Options { short: "w", short_valued: "sf", long: Names(""), number: true },
    ),
    command(
        "sort",
        Operands::Paths,
        Options {
            short: "bdfghiMnRrVcCsuzm",
            short_valued: "kt",
            long: Names(
                "\
                reverse unique numeric-sort human-numeric-sort version-sort ignore-case key= \
                field-separator= stable check zero-terminated",
            ),
            number: false,
        },
    ),
    command(
        "stat",
        Operands::Paths,
        Options {
            short: "tf",
            short_valued: "c",
            long: Names("format= printf= terse"),
            number: false,
        },
    ),
    command(
        "tail",
        Operands::Paths,
        Options {
            short: "qvz",
            short_valued: "nc",
            long: Names("lines= bytes= quiet silent verbose"),
            number: true,
        },
    ),
    command("tr", Operands::Text, short("cCdst")),
    command(
        "tree",
        Operands::Paths,
        Options {
            short: "adfipshugDFn",
            short_valued: "LIP",
            long: Names("dirsfirst noreport gitignore prune du"),
            number: false,
        },
    ),
    command("true", Operands::None, short("")),
    command("type", Operands::Text, short("atpP")),
    command("uname", Operands::None, short("asnrvmpio")),
    command(
        "uniq",
        Operands::OnePath,
        Options {
            short: "cdDiuz",
            short_valued: "fsw",
            long: Names("count repeated unique ignore-case"),
            number: false,
        },
    ),
    command(
        "wc",
        Operands::Paths,
        Options {
            short: "clmwL",
            short_valued: "",
            long: Names("bytes chars lines words max-line-length"),
            number: false,
        },
    ),
    command("which", Operands::Text, short("as")),
    command("whoami", Operands::None, short("")),
];
