//! The tokens of a server: from the environment, from a file, or generated.
//!
//! A token is never taken from an argument, which every user of the machine can read.

use anyhow::{Context, Result, bail};
use interlingua_server::{Scope, Seal, Token, TokenKey};
use interlingua_sessions::SessionId;

use crate::arguments_of_serve::ServeArguments;

/// The variable that contains the token of the administrator. Agents do not receive it.
pub(super) const VARIABLE: &str = interlingua_agents::SERVER_TOKEN;

/// The shortest token that is accepted.
const SHORTEST: usize = 16;

/// The tokens of a server.
pub(super) struct Tokens {
    pub(super) all: Vec<Token>,
    /// Signs tokens for one session. It belongs to the first administrator.
    pub(super) key: Option<TokenKey>,
    /// Seals what records keep of other services, with the same secret.
    pub(super) seal: Option<Seal>,
    /// The one that was generated, because there was none.
    pub(super) generated: Option<String>,
}

/// Reads the tokens.
pub(super) fn read(arguments: &ServeArguments) -> Result<Tokens> {
    let mut tokens = Vec::new();
    let mut secret = None;
    if let Some(path) = &arguments.tokens {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let at = || format!("{}:{number}", path.display());
                let (token, scope) = parse(line).with_context(at)?;
                if scope == Scope::Admin {
                    secret.get_or_insert_with(|| token.to_owned());
                }
                tokens.push(Token::new(token, scope));
            }
        }
    }
    if let Ok(token) = std::env::var(VARIABLE) {
        let token = token.trim();
        check(token).context(VARIABLE)?;
        secret = Some(token.to_owned());
        tokens.push(Token::new(token, Scope::Admin));
    }
    let mut generated = None;
    if tokens.is_empty() {
        let token = SessionId::random()?.to_string();
        tokens.push(Token::new(&token, Scope::Admin));
        secret = Some(token.clone());
        generated = Some(token);
    }
    let key = secret.as_deref().map(TokenKey::from_secret);
    let seal = secret.as_deref().map(Seal::from_secret);
    Ok(Tokens { all: tokens, key, seal, generated })
}

/// A line of the file: a token, and whom it is for (`admin`, `owner NAME` or `session ID`).
fn parse(line: &str) -> Result<(&str, Scope)> {
    let words: Vec<_> = line.split_whitespace().collect();
    let (token, scope) = match words[..] {
        [token] | [token, "admin"] => (token, Scope::Admin),
        [token, "owner", name] => (token, Scope::Owner(name.to_owned())),
        [token, "session", id] => (token, Scope::Session(SessionId::new(id)?)),
        _ => bail!("a line is a token, followed by `admin`, `owner NAME` or `session ID`"),
    };
    check(token)?;
    Ok((token, scope))
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
