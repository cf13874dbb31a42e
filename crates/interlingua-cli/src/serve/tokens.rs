//! The tokens of a server: from the environment, from a file, or generated.
//!
//! A token is never taken from an argument, which every user of the machine can read.

use anyhow::{Context, Result, bail};
use interlingua_server::{Scope, Token};
use interlingua_sessions::SessionId;

use crate::arguments_of_serve::ServeArguments;

/// The variable that contains the token of the administrator.
const VARIABLE: &str = "INTERLINGUA_TOKEN";

/// The shortest token that is accepted.
const SHORTEST: usize = 16;

/// The tokens, and one that was generated because there was none.
pub(super) fn read(arguments: &ServeArguments) -> Result<(Vec<Token>, Option<String>)> {
    let mut tokens = Vec::new();
    if let Some(path) = &arguments.tokens {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                tokens.push(parse(line).with_context(|| format!("{}:{number}", path.display()))?);
            }
        }
    }
    if let Ok(token) = std::env::var(VARIABLE) {
        tokens.push(admin(token.trim()).context(VARIABLE)?);
    }
    if !tokens.is_empty() {
        return Ok((tokens, None));
    }
    let generated = SessionId::random()?.to_string();
    Ok((vec![Token::new(&generated, Scope::Admin)], Some(generated)))
}

/// A line of the file: a token, and whom it is for (`admin`, `owner NAME` or `session ID`).
fn parse(line: &str) -> Result<Token> {
    let words: Vec<_> = line.split_whitespace().collect();
    let (token, scope) = match words[..] {
        [token] | [token, "admin"] => (token, Scope::Admin),
        [token, "owner", name] => (token, Scope::Owner(name.to_owned())),
        [token, "session", id] => (token, Scope::Session(SessionId::new(id)?)),
        _ => bail!("a line is a token, followed by `admin`, `owner NAME` or `session ID`"),
    };
    check(token)?;
    Ok(Token::new(token, scope))
}

fn admin(token: &str) -> Result<Token> {
    check(token)?;
    Ok(Token::new(token, Scope::Admin))
}

fn check(token: &str) -> Result<()> {
    if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("a token has at least {SHORTEST} visible ASCII characters, and no spaces");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_token_and_whom_it_is_for() {
        for line in [
            "0123456789abcdef",
            "0123456789abcdef admin",
            "0123456789abcdef owner anna",
            "0123456789abcdef session s1",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
        for line in ["short", "0123456789abcdef king", "0123456789abcdef session ../x"] {
            let problem = parse(line).unwrap_err().to_string();
            assert!(!problem.contains("0123456789abcdef"), "{problem}");
        }
    }
}
