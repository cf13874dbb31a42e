//! How lines are taken apart.

use super::*;

/// The commands of a line, with `?` for words that are not literal, `>` and `<` for redirections.
fn commands(line: &str) -> Vec<String> {
    let shown = |word: &Word| word.literal().unwrap_or("?").to_owned();
    let script = parse(line);
    let commands = script.commands.iter().map(|command| {
        let mut parts: Vec<_> = command.words.iter().map(shown).collect();
        parts.extend(command.redirections.iter().map(|redirection| match redirection {
            Redirection::Read(word) => format!("<{}", shown(word)),
            Redirection::Write(word) => format!(">{}", shown(word)),
        }));
        parts.join(" ")
    });
    commands.collect()
}

fn is_resolved(line: &str) -> bool {
    let script = parse(line);
    let literal = |command: &SimpleCommand| command.literal_words().is_some();
    script.unresolved.is_none() && script.commands.iter().all(literal)
}

#[test]
fn every_simple_command_of_a_line_is_found() {
    let lines: &[(&str, &[&str])] = &[
        ("git status", &["git status"]),
        ("a; b && c || d | e & f\ng", &["a", "b", "c", "d", "e", "f", "g"]),
        ("(a; b); { c; }", &["a", "b", "c"]),
        ("! a", &["a"]),
        ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
        ("while a; do b; done; until c; do d; done", &["a", "b", "c", "d"]),
        ("case x in a|b) c;; *) d;; esac", &["c", "d"]),
        ("a > b 2>&1 < c 2>/dev/null >&- 3<&0", &["a >b <c"]),
        ("a >> b &> c >| d <> e >&f", &["a >b >c >d <e >e >f"]),
        ("> a", &[">a"]),
        ("{ a; b; } > c", &["a", "b", ">c"]),
        ("a <<'E' | b\n$(c)\nE\nd", &["a", "b", "d"]),
        ("a <<E; b\ntext\nE", &["a", "b"]),
        ("a <<< 'x y'", &["a"]),
        ("a \\\n  b # c; d\ne", &["a b", "e"]),
        ("r\\\nm x", &["rm x"]),
        ("\"r\"m 'x y'", &["rm x y"]),
        ("a b=c", &["a b=c"]),
    ];
    for (line, expected) in lines {
        assert_eq!(commands(line), *expected, "{line}");
        assert!(is_resolved(line), "{line}: {:?}", parse(line));
    }
}

#[test]
fn commands_inside_of_words_are_found_and_leave_the_line_unresolved() {
    let lines: &[(&str, &[&str])] = &[
        ("a $(b) c", &["b", "a ? c"]),
        ("a \"`b`\"", &["b", "a ?"]),
        ("a $(b $(c))", &["c", "b ?", "a ?"]),
        ("a <(b) >(c)", &["b", "c", "a ? ?"]),
        ("a > >(b)", &["b", "a >?"]),
        ("x=$(a) b", &["a", "b"]),
        ("a <<E\n$(b)\nE", &["b", "a"]),
        ("a <<< $(b)", &["b", "a"]),
        ("for x in $(a); do b; done", &["a", "b"]),
        ("f() { a; }", &["a"]),
        ("coproc a b", &["a b"]),
        ("case $(a) in b) c;; esac", &["a", "c"]),
        ("$x a", &["? a"]),
        ("time a", &["a"]),
    ];
    for (line, expected) in lines {
        assert_eq!(commands(line), *expected, "{line}");
        let assigns = parse(line).commands.iter().any(|command| command.assigns);
        assert!(!is_resolved(line) || assigns || line.contains("> >("), "{line}");
    }
}

#[test]
fn what_shells_read_differently_is_unresolved() {
    let lines = [
        "[[ a > b ]]",
        "[[ -v 'a[$(b)]' ]]",
        "((a b))",
        "for ((i=0; i<1; i++)); do a; done",
        "a $((b))",
        "a $[b]",
        "a ${b:-$(c)}",
        "a ${b[$(c)]}",
        "echo $'\\'; rm x #'",
        "a \"$'b'\"",
        "select x in a; do b; done",
        "a 'b",
        "a \"b",
        "a $(b",
        "a `b",
        "a <<E\nb",
        "a <<E\nb\\\nE\nc <<Z\nE\nrm x\nZ",
        "a <<$x\nb\n$x",
        "a <<E\"F\"\nb\nEF",
        "((true;) ); a -- <<b; c d\nb",
        "a &>b c",
        "&>b a",
        "git {PATH}>/dev/null status",
        "git status\r",
        "a\0b",
        "`a \"\\$(rm x)\"`",
        "a & & b",
        "for PATH in /x; do git status; done",
        "{a,b} c",
    ];
    for line in lines {
        assert!(!is_resolved(line), "{line}: {:?}", parse(line));
    }
}

#[test]
fn nested_and_long_lines_end_quickly() {
    let shapes = [
        ("(", "x", ")"),
        ("((", "x", "))"),
        ("$(", "x", ")"),
        ("\"$(", "x", ")\""),
        ("$((", "1", "))"),
        ("${a:-", "x", "}"),
        ("`", "x", "`"),
        ("{ ", "x", "; }"),
        ("if ", "x", "; then x; fi"),
        ("! ", "x", ""),
        ("a[", "x", "]=1"),
        ("case x in x) ", "y", ";; esac"),
        ("f() { ", "x", ";}"),
        ("x <(", "y", ")"),
        ("[[ ( ", "a", " ) ]]"),
        ("while x; do ", "x", "; done"),
        ("coproc ", "x", ""),
        ("time ", "x", ""),
        ("[[ ! ", "a", " ]]"),
        ("$[", "1", "]"),
        ("x | ", "x", ""),
        ("x;", "x", ""),
        ("x <<E\n", "x", "\nE\n"),
        ("a=(", "x", ")"),
        ("!(", "x", ")"),
        ("'", "x", ""),
        ("\\", "x", ""),
        ("\\\n", "x", ""),
        ("${a[", "x", "]}"),
        ("[[ a && ", "x", " ]]"),
        ("<(", "x", ")"),
        ("x[${a[", "x", "]}]=1"),
        ("$((", "x", ""),
        ("$(", "x", ""),
        ("$[", "x", ""),
        ("${!a[", "x", "]}"),
        ("\"${a[", "x", "]}\""),
        ("${a[$((", "x", "))]}"),
        ("x <<E\n$((", "x", "\nE"),
        ("function f { ", "x", "; }"),
        ("for i in a; do ", "x", "; done"),
        ("{", "x", "}"),
    ];
    let started = std::time::Instant::now();
    for (open, middle, close) in shapes {
        for count in [1, 2, 3, 4, 10, 60, 120, 250, 1000, 5000] {
            let line = format!("{}{middle}{}", open.repeat(count), close.repeat(count));
            parse(&line);
        }
    }
    // About 3 s in a build without optimization; a parser that backtracks would take forever.
    assert!(started.elapsed().as_secs() < 60);
    assert!(parse(&"a".repeat(MAX_LENGTH + 1)).unresolved.is_some());
    assert!(parse(&"(".repeat(MAX_OPENERS + 1)).unresolved.is_some());
}

/// The parser panics on some input, which must not reach it: a release build would abort.
#[test]
fn no_line_makes_the_parser_panic() {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let pieces = [
        "a",
        "b",
        " ",
        " ",
        "\n",
        ";",
        "&&",
        "|",
        "|&",
        "(",
        ")",
        "{ ",
        "; }",
        "$(",
        ")",
        "`",
        "\"",
        "'",
        "\\",
        "\\\n",
        "$",
        "$'",
        "${x:-",
        "}",
        "$((",
        "))",
        "[[ ",
        " ]]",
        " #",
        "<<E",
        "\nE\n",
        "<<'E'",
        "<<-E",
        "<<<",
        "<(",
        ">(",
        ">",
        "<",
        ">&",
        "&>",
        "x=1 ",
        "!",
        "~",
        "~9",
        "*",
        "[",
        "]",
        "if ",
        "; then ",
        "; fi",
        "; do ",
        "; done",
        "for i in a",
        "case x in x) ",
        ";; esac",
        "f() ",
        "coproc ",
        "99999999999",
        "a[",
        "$[",
        "${a[",
        "é",
        "\u{a0}",
        "{fd}>",
        "a=(",
        "()",
        ";;",
        "<&-",
    ];
    let piece = proptest::sample::select(pieces.to_vec());
    let lines = proptest::collection::vec(piece, 1..60).prop_map(|pieces| pieces.concat());
    let config = Config { cases: 2000, failure_persistence: None, ..Config::default() };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
    let tested = TestRunner::new_with_rng(config, random).run(&lines, |line| {
        prop_assert_ne!(parse(&line).unresolved, Some(FAILED));
        Ok(())
    });
    tested.unwrap();
}

/// A thread of tokio has 2 MiB.
#[test]
fn flat_lines_need_little_stack() {
    let pieces = [
        "a;", "a|", "a&&", "a||", "a&", ">a ", "<a ", "2>&1 ", "$a", "\"a", "\"a\"", "'a'", "a\n",
        "a=", "a=b ", "\\", "~/", "*", "?", ")", "}", "]", "#", ";;", "&>a ", "<<<a ", "<<a\n",
        "-", "a ",
    ];
    let lines: Vec<_> = pieces.iter().map(|piece| piece.repeat(1024 / piece.len())).collect();
    assert!(lines.iter().all(|line| lines::is_flat(line)));
    let small = std::thread::Builder::new().stack_size(512 << 10);
    let thread = small.spawn(move || lines.iter().for_each(|line| drop(parse(line)))).unwrap();
    thread.join().unwrap();
    for line in ["$(a)", "i\\\nf a", "{ a; }", &"a".repeat(1025)] {
        assert!(!lines::is_flat(line), "{line}");
    }
}
