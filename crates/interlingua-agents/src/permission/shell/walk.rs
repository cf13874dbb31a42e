//! Walks the syntax tree of a line, and collects its simple commands.
//!
//! Every match on the tree is exhaustive: a construct that a new release of the parser adds does
//! not compile until it is decided here.

use brush_parser::Parser;
use brush_parser::ast;
use brush_parser::word::WordPiece;

use super::lines;
use super::script::{Redirection, Script, SimpleCommand, Word};
use super::word;

/// How deeply command substitutions may be nested in each other.
const MAX_SUBSTITUTION_DEPTH: usize = 16;

/// How many commands a line may have.
const MAX_COMMANDS: usize = 1000;

/// Agents may run commands in the user's shell.
const READ_DIFFERENTLY: &str = "bash and zsh read it differently";

pub(super) fn walk(line: &str) -> Script {
    let mut walker = Walker { script: Script::default(), depth: 0 };
    walker.program(line);
    walker.script
}

struct Walker {
    script: Script,
    /// The number of command substitutions around the current command.
    depth: usize,
}

impl Walker {
    fn program(&mut self, text: &str) {
        // The text of a substitution is parsed again, and must be as harmless as a line.
        if let Some(reason) = lines::unparsable(text) {
            return self.script.mark_unresolved(reason);
        }
        match Parser::new(text.as_bytes(), &word::options()).parse_program() {
            Ok(program) => program.complete_commands.iter().for_each(|list| self.list(list)),
            Err(_) => self.script.mark_unresolved("it cannot be parsed"),
        }
    }

    fn list(&mut self, list: &ast::CompoundList) {
        let ast::CompoundList(items) = list;
        for ast::CompoundListItem(and_or, separator) in items {
            match separator {
                ast::SeparatorOperator::Async | ast::SeparatorOperator::Sequence => {}
            }
            let ast::AndOrList { first, additional } = and_or;
            self.pipeline(first);
            for next in additional {
                match next {
                    ast::AndOr::And(pipeline) | ast::AndOr::Or(pipeline) => self.pipeline(pipeline),
                }
            }
        }
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline) {
        let ast::Pipeline { timed, bang: _, seq } = pipeline;
        if timed.is_some() {
            // A keyword in bash, and a program that runs another in sh.
            self.script.mark_unresolved("`time` runs another command");
        }
        seq.iter().for_each(|command| self.command(command));
    }

    fn command(&mut self, command: &ast::Command) {
        match command {
            ast::Command::Simple(simple) => self.simple(simple),
            ast::Command::Compound(compound, redirections) => {
                self.compound(compound);
                self.redirections_of_compound(redirections.as_ref());
            }
            ast::Command::Function(ast::FunctionDefinition { fname: _, body }) => {
                self.script.mark_unresolved("it defines a function");
                let ast::FunctionBody(compound, redirections) = body;
                self.compound(compound);
                self.redirections_of_compound(redirections.as_ref());
            }
            // `[[ -v 'a[$(rm x)]' ]]` runs `rm`, and in sh `[[ a > b ]]` writes `b`.
            ast::Command::ExtendedTest(_, redirections) => {
                self.script.mark_unresolved("`[[` evaluates its arguments");
                self.redirections_of_compound(redirections.as_ref());
            }
        }
    }

    fn compound(&mut self, compound: &ast::CompoundCommand) {
        match compound {
            // In sh, `((a b))` runs `a`.
            ast::CompoundCommand::Arithmetic(_) => {
                self.script.mark_unresolved("`((` evaluates its arguments");
            }
            ast::CompoundCommand::ArithmeticForClause(clause) => {
                self.script.mark_unresolved("`((` evaluates its arguments");
                self.list(&clause.body.list);
            }
            ast::CompoundCommand::BraceGroup(group) => self.list(&group.list),
            ast::CompoundCommand::Subshell(subshell) => self.list(&subshell.list),
            ast::CompoundCommand::ForClause(clause) => {
                self.script.mark_unresolved("`for` assigns a variable");
                clause.values.iter().flatten().for_each(|value| {
                    self.word(value);
                });
                self.list(&clause.body.list);
            }
            ast::CompoundCommand::CaseClause(clause) => self.case(clause),
            ast::CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.list(&clause.then);
                for ast::ElseClause { condition, body } in clause.elses.iter().flatten() {
                    condition.iter().for_each(|condition| self.list(condition));
                    self.list(body);
                }
            }
            ast::CompoundCommand::WhileClause(clause)
            | ast::CompoundCommand::UntilClause(clause) => {
                let ast::WhileOrUntilClauseCommand(condition, body, _) = clause;
                self.list(condition);
                self.list(&body.list);
            }
            ast::CompoundCommand::Coprocess(coprocess) => {
                self.script.mark_unresolved("`coproc` assigns a variable");
                self.command(&coprocess.body);
            }
        }
    }

    fn case(&mut self, clause: &ast::CaseClauseCommand) {
        self.must_be_literal(&clause.value);
        for ast::CaseItem { patterns, cmd, post_action, loc: _ } in &clause.cases {
            match post_action {
                ast::CaseItemPostAction::ExitCase
                | ast::CaseItemPostAction::UnconditionallyExecuteNextCaseItem
                | ast::CaseItemPostAction::ContinueEvaluatingCases => {}
            }
            for pattern in patterns {
                // A pattern may contain `*`, but no expansion.
                if pattern.value.contains(['$', '`', '(', '<', '>']) {
                    self.must_be_literal(pattern);
                }
            }
            cmd.iter().for_each(|list| self.list(list));
        }
    }

    fn simple(&mut self, simple: &ast::SimpleCommand) {
        if self.script.commands.len() >= MAX_COMMANDS {
            return self.script.mark_unresolved("it has too many commands to be judged");
        }
        let ast::SimpleCommand { prefix, word_or_name, suffix } = simple;
        let mut command = SimpleCommand::default();
        let items = prefix.iter().flat_map(|ast::CommandPrefix(items)| items);
        if is_cut_by_other_shells(items.clone(), word_or_name.is_some())
            || is_cut_by_other_shells(
                suffix.iter().flat_map(|ast::CommandSuffix(items)| items),
                false,
            )
        {
            self.script.mark_unresolved(READ_DIFFERENTLY);
        }
        for item in items {
            self.item(item, true, &mut command);
        }
        if let Some(name) = word_or_name {
            // In zsh, `{rm x}` is a group.
            if name.value.starts_with('{') {
                self.script.mark_unresolved(READ_DIFFERENTLY);
            }
            command.words.push(self.word(name));
        }
        for item in suffix.iter().flat_map(|ast::CommandSuffix(items)| items) {
            self.item(item, false, &mut command);
        }
        self.script.commands.push(command);
    }

    /// An item before or after the name of a command.
    fn item(
        &mut self,
        item: &ast::CommandPrefixOrSuffixItem,
        before_name: bool,
        command: &mut SimpleCommand,
    ) {
        match item {
            ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                self.redirection(redirect, command);
            }
            ast::CommandPrefixOrSuffixItem::Word(word) => command.words.push(self.word(word)),
            ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                if before_name {
                    command.assigns = true;
                    self.word(word);
                    return;
                }
                let read = self.word(word);
                command.words.push(match assignment.value {
                    ast::AssignmentValue::Scalar(_) => read,
                    ast::AssignmentValue::Array(_) => Word::Unresolved { prefix: String::new() },
                });
            }
            ast::CommandPrefixOrSuffixItem::ProcessSubstitution(kind, subshell) => {
                match kind {
                    ast::ProcessSubstitutionKind::Read | ast::ProcessSubstitutionKind::Write => {}
                }
                command.words.push(Word::Unresolved { prefix: String::new() });
                self.list(&subshell.list);
            }
        }
    }

    fn redirections_of_compound(&mut self, redirections: Option<&ast::RedirectList>) {
        let Some(ast::RedirectList(redirections)) = redirections else { return };
        let mut command = SimpleCommand::default();
        redirections.iter().for_each(|redirect| self.redirection(redirect, &mut command));
        self.script.commands.push(command);
    }

    fn redirection(&mut self, redirect: &ast::IoRedirect, command: &mut SimpleCommand) {
        match redirect {
            ast::IoRedirect::File(_, kind, target) => self.file(kind, target, command),
            ast::IoRedirect::HereDocument(_, document) => self.here_document(document),
            ast::IoRedirect::HereString(_, word) => self.must_be_literal(word),
            ast::IoRedirect::OutputAndError(word, _) => {
                let word = self.target(word);
                push_file(Redirection::Write(word), command);
            }
        }
    }

    fn file(
        &mut self,
        kind: &ast::IoFileRedirectKind,
        target: &ast::IoFileRedirectTarget,
        command: &mut SimpleCommand,
    ) {
        let word = match target {
            ast::IoFileRedirectTarget::Fd(_) => return,
            ast::IoFileRedirectTarget::Filename(word)
            | ast::IoFileRedirectTarget::Duplicate(word) => {
                // In zsh, `<1-5>` is a pattern.
                let is_range = word.value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
                    && word.value.contains('-');
                if is_range && matches!(kind, ast::IoFileRedirectKind::Read) {
                    self.script.mark_unresolved(READ_DIFFERENTLY);
                }
                self.target(word)
            }
            ast::IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                self.list(&subshell.list);
                Word::Unresolved { prefix: String::new() }
            }
        };
        match kind {
            ast::IoFileRedirectKind::Read => push_file(Redirection::Read(word), command),
            ast::IoFileRedirectKind::Write
            | ast::IoFileRedirectKind::Append
            | ast::IoFileRedirectKind::Clobber => push_file(Redirection::Write(word), command),
            ast::IoFileRedirectKind::ReadAndWrite => {
                push_file(Redirection::Read(word.clone()), command);
                push_file(Redirection::Write(word), command);
            }
            ast::IoFileRedirectKind::DuplicateInput | ast::IoFileRedirectKind::DuplicateOutput
                if is_descriptor(&word) => {}
            ast::IoFileRedirectKind::DuplicateInput => {
                push_file(Redirection::Read(word), command);
            }
            // `>&file` writes a file in bash.
            ast::IoFileRedirectKind::DuplicateOutput => {
                push_file(Redirection::Write(word), command);
            }
        }
    }

    /// Reads the file of a redirection. In zsh, `>! file` overwrites the file.
    fn target(&mut self, written: &ast::Word) -> Word {
        if written.value.starts_with('!') {
            self.script.mark_unresolved(READ_DIFFERENTLY);
        }
        self.word(written)
    }

    /// Text that is given to a command as its input. Shells disagree about where a document with a
    /// backslash ends, or one whose delimiter is quoted in an unusual way.
    fn here_document(&mut self, document: &ast::IoHereDocument) {
        let ast::IoHereDocument { remove_tabs: _, requires_expansion, here_end, doc } = document;
        let end = &here_end.value;
        let unquoted = ['\'', '"']
            .into_iter()
            .find_map(|quote| end.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)));
        let plain = |end: &str| {
            !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        // A document is whole lines. What is not has another meaning than the parser found.
        let is_whole = doc.value.is_empty() || doc.value.ends_with('\n');
        if !is_whole {
            self.script.mark_unresolved("it has a here-document that is not complete");
        }
        if !plain(unquoted.unwrap_or(end)) {
            self.script.mark_unresolved("it has a here-document with an unusual delimiter");
        }
        if *requires_expansion && doc.value.contains(['$', '`', '\\']) {
            self.script.mark_unresolved("it has a here-document with expansions");
            if !lines::has_costly_expansions(&doc.value) {
                let pieces = brush_parser::word::parse_heredoc(&doc.value, &word::options());
                let substitutions = pieces.into_iter().flatten().filter_map(|it| match it.piece {
                    WordPiece::CommandSubstitution(text)
                    | WordPiece::BackquotedCommandSubstitution(text) => Some(text),
                    _ => None,
                });
                substitutions.for_each(|text| self.substitution(&text));
            }
        }
    }

    /// Reads a word, and walks the commands that its expansion would run.
    fn word(&mut self, written: &ast::Word) -> Word {
        let read = word::read(&written.value);
        if read.may_run_more {
            self.script.mark_unresolved("it has a substitution");
        }
        // In zsh, `{ echo } always { rm x; }` runs `rm`.
        if read.closes_group || written.value == "{" {
            self.script.mark_unresolved(READ_DIFFERENTLY);
        }
        read.substitutions.iter().for_each(|text| self.substitution(text));
        read.word
    }

    /// Reads a word that belongs to no command.
    fn must_be_literal(&mut self, written: &ast::Word) {
        if self.word(written).literal().is_none() {
            self.script.mark_unresolved("it has a word that is not literal");
        }
    }

    fn substitution(&mut self, text: &str) {
        if self.depth >= MAX_SUBSTITUTION_DEPTH {
            return self.script.mark_unresolved("it is nested too deeply to be judged");
        }
        self.depth += 1;
        self.program(text);
        self.depth -= 1;
    }
}

/// Whether words follow `&>`. Other shells take it for the end of one command, so that these words are another one.
fn is_cut_by_other_shells<'c>(
    items: impl Iterator<Item = &'c ast::CommandPrefixOrSuffixItem>,
    word_follows: bool,
) -> bool {
    let is_both = |item: &&ast::CommandPrefixOrSuffixItem| {
        use ast::CommandPrefixOrSuffixItem::IoRedirect;
        matches!(item, IoRedirect(ast::IoRedirect::OutputAndError(..)))
    };
    let is_redirection = |item: &&ast::CommandPrefixOrSuffixItem| {
        matches!(item, ast::CommandPrefixOrSuffixItem::IoRedirect(_))
    };
    let mut rest = items.skip_while(|item| !is_both(item)).peekable();
    rest.peek().is_some() && (word_follows || rest.any(|item| !is_redirection(&item)))
}

/// Adds a redirection, unless it is of `/dev/null`.
fn push_file(redirection: Redirection, command: &mut SimpleCommand) {
    let (Redirection::Read(word) | Redirection::Write(word)) = &redirection;
    if word.literal() != Some("/dev/null") {
        command.redirections.push(redirection);
    }
}

/// Whether the target of `>&` is a descriptor: `1`, `1-` or `-`.
fn is_descriptor(word: &Word) -> bool {
    let Some(text) = word.literal() else { return false };
    let digits = text.strip_suffix('-').unwrap_or(text);
    (!digits.is_empty() || text == "-") && digits.bytes().all(|byte| byte.is_ascii_digit())
}
