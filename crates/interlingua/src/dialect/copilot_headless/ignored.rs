//! The records and fields of the protocol that are left out on purpose, in addition to those of the
//! JSON stream.

use crate::dialect::Ignored;
use crate::dialect::copilot::ignored::IGNORED as OF_EVENTS;

pub(super) static IGNORED: &[Ignored] = &ALL;

/// Whether events of a type are left out, and do not occur in the JSON stream.
pub(super) fn is_only_here(name: &str) -> bool {
    let covered = |list: &[Ignored]| list.iter().any(|ignored| ignored.covers(name));
    covered(OWN) && !covered(OF_EVENTS)
}

const OWN: &[Ignored] = &[
    Ignored {
        what: &["session.lifecycle", "host.event"],
        why: "for clients that show several sessions; the events of the session report the same",
    },
    Ignored {
        what: &[
            "ping",
            "connect",
            "status.get",
            "session.create",
            "session.resume?",
            "session.resume: params.*",
            "session.send",
            "session.abort",
            "session.model.switchTo",
            "session.mode.set",
            "session.permissions.handlePendingPermissionRequest",
            "session.plan.readSqlTodos",
            "session.destroy",
        ],
        why: "a request of the client; the agent reports its effect as an event",
    },
    Ignored {
        what: &["response", "(no type)", "(no type): *"],
        why: "the client may have requested anything; errors and the todo list are read",
    },
    Ignored {
        what: &["userInput.request", "exitPlanMode.request"],
        why: "the event before it has the same content, and names the call",
    },
    Ignored {
        what: &["model.*"],
        why: "the requests to the model as the program's log has them; the other events report them",
    },
    Ignored {
        what: &[
            "sandbox.decision",
            "session.indexed_search",
            "session.mode_notice_delivered",
            "exit_plan_mode.*",
        ],
        why: "records for the program's own screen and log",
    },
    Ignored {
        what: &[
            "session.start: data.alreadyInUse",
            "session.start: data.contextTier",
            "session.start: data.producer",
            "session.start: data.remoteSteerable",
            "session.start: data.startTime",
            "session.start: data.version",
            "session.resume: data.alreadyInUse",
            "session.resume: data.contextTier",
            "session.resume: data.eventCount",
            "session.resume: data.eventsFileSizeBytes",
            "session.resume: data.remoteSteerable",
            "session.resume: data.resumeTime",
            "session.resume: data.sessionLimits",
            "session.resume: data.sessionWasActive",
            "session.model_change: data.contextTier",
            "session.model_change: data.previousModel",
            "session.model_change: data.reasoningEffort",
        ],
        why: "how the program keeps the session; the version is that of its file",
    },
    Ignored {
        what: &[
            "user.message: data.agentMode",
            "permission.requested: data.agentMode",
            "permission.requested: data.permissionMode",
            "permission.requested: data.ownerSessionId",
        ],
        why: "the state of the session when a record was written; the client has set it",
    },
    Ignored {
        what: &["permission.requested: data.promptRequest"],
        why: "the same request, in the words of the program's own screen",
    },
    Ignored {
        what: &["tool.execution_complete: data.result.contents"],
        why: "the output once more; it is emitted, and so is the exit code",
    },
    Ignored {
        what: &["user_input.completed: data.wasFreeform"],
        why: "whether the answer is one of the choices, which the question has",
    },
];

const ALL: [Ignored; OF_EVENTS.len() + OWN.len()] = {
    let mut all = [Ignored { what: &[], why: "" }; OF_EVENTS.len() + OWN.len()];
    let (own, of_events) = all.split_at_mut(OWN.len());
    own.copy_from_slice(OWN);
    of_events.copy_from_slice(OF_EVENTS);
    all
};
