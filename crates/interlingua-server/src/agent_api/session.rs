//! The session of a request: the one that is there, whatever the server's settings were when it was begun, or a
//! new one.

use std::time::Duration;

use interlingua_sessions::host::NewSession;
use interlingua_sessions::{ClientTool, Error, IdempotencyKey, SessionId, SessionRecord};

use super::problem::Problem;
use super::request::{RunRequest, Subject};
use super::{Enabled, sandbox};
use crate::app::App;
use crate::security::Access;

/// How long a session is kept after its last use.
const TTL: Duration = Duration::from_secs(600);

/// The session of a request. That of a chat is created if there is none.
pub(super) async fn of_request(
    app: &App,
    enabled: &Enabled<'_>,
    access: &Access,
    request: &RunRequest,
    idempotency: Option<&IdempotencyKey>,
) -> Result<SessionRecord, Problem> {
    let (key, sandbox, chat) = match &request.subject {
        Subject::Session(id) => {
            let known = app.session(access, id).await.map_err(|_| {
                Problem::not_found(
                    "There is no such session: it has expired, or never existed. Send the message without `session_id`.",
                )
            })?;
            return fits(known, request);
        }
        Subject::Chat(chat) => {
            let digest = sandbox::digest(&["chat", chat]);
            let key = IdempotencyKey::new(format!("agent-api-{digest}"))?;
            (Some(key), format!("sbx_{digest}"), Some(&**chat))
        }
        Subject::New => match idempotency {
            // Sent again, it finds its session.
            Some(key) => {
                let digest = sandbox::digest(&["request", key.as_str()]);
                let key = IdempotencyKey::new(format!("agent-api-{digest}"))?;
                (Some(key), format!("sbx_{digest}"), None)
            }
            None => (None, format!("sbx_{}", SessionId::random()?), None),
        },
    };
    let owner = access.owner();
    if let Some(key) = &key
        && let Some(known) = app.sessions.created(owner, key).await?
    {
        return fits(known, request);
    }
    let new = new(app, enabled, request, sandbox, chat)?;
    let folder = sandbox::create(enabled.folder, owner, &new.sandbox).await?;
    let new = NewSession {
        key: key.clone(),
        folder: Some(folder),
        owner: owner.map(str::to_owned),
        ..new.session
    };
    match (app.sessions.create(new).await, key) {
        // Another request was faster, and named something else.
        (Err(Error::KeyReused(_)), Some(key)) => match app.sessions.created(owner, &key).await? {
            Some(known) => fits(known, request),
            None => Err(Problem::conflict("The session has just ended: send the message again.")),
        },
        (created, _) => Ok(created?),
    }
}

/// A session that a request asks for, and the name of its sandbox.
struct Wanted {
    session: NewSession,
    sandbox: String,
}

fn new(
    app: &App,
    enabled: &Enabled<'_>,
    request: &RunRequest,
    sandbox: String,
    chat: Option<&str>,
) -> Result<Wanted, Problem> {
    let sandbox = request.sandbox.clone().unwrap_or(sandbox);
    let agent = match (&request.agent, enabled.agent) {
        (Some(agent), _) | (None, Some(agent)) => agent.clone(),
        (None, None) => return Err(Problem::invalid("`agent_type` is missing: name an agent.")),
    };
    let allowed = &app.settings.allowed;
    if allowed.check_agent(&agent).is_err() {
        return Err(Problem::invalid(
            "`agent_type` is not allowed: name one that the server permits.",
        ));
    }
    let mode = enabled.mode.clone();
    allowed.check_mode(mode.as_deref())?;
    let session = NewSession {
        agent,
        mode,
        metadata: sandbox::metadata(&sandbox, chat),
        tools: ClientTool::form(),
        ttl: Some(TTL),
        ..NewSession::default()
    };
    Ok(Wanted { session, sandbox })
}

/// Checks that a follow-up names the agent and the sandbox that its session has, if it names any.
fn fits(record: SessionRecord, request: &RunRequest) -> Result<SessionRecord, Problem> {
    let has_other =
        |own: &str, named: &Option<String>| named.as_deref().is_some_and(|it| it != own);
    match sandbox::named(&record) {
        Some(own) if has_other(&own, &request.sandbox) => {
            Err(Problem::conflict("The session works in another sandbox: name that one, or none."))
        }
        _ if has_other(&record.agent, &request.agent) => {
            Err(Problem::conflict("The session has another agent: name that one, or none."))
        }
        _ => Ok(record),
    }
}
