//! The agent's plan. Every update contains the whole list.

use super::open::open_enum;
use super::payload::{owned, payload};
use crate::json::{Json, Text};

payload! {
    /// The plan changed.
    pub struct PlanUpdated<'a> {
        /// The agent's id for the plan, which is the same for every update of one list.
        pub plan: Option<Text<'a>>,
        /// The tool call that wrote the whole list, if one did.
        pub call: Option<Text<'a>>,
        /// All steps, in order. An empty list means that the plan was cleared.
        pub items: Vec<PlanItem<'a>>,
    }
}

payload! {
    /// A step of a plan.
    pub listed struct PlanItem<'a> {
        /// The agent's id for the step.
        pub id: Option<Text<'a>>,
        /// The description of the step.
        pub text: Text<'a>,
        /// The status.
        pub status: PlanStatus,
        /// The status as the agent wrote it, where that is less or more precise.
        pub raw_status: Option<Json<'a>>,
        /// The text to show while the step is in progress.
        pub active_form: Option<Text<'a>>,
        /// The priority, as the agent names it.
        pub priority: Option<Text<'a>>,
    }
}

open_enum! {
    /// The status of a step.
    #[derive(Default)]
    pub enum PlanStatus {
        /// Not started.
        #[default]
        Pending = "pending",
        /// In progress.
        InProgress = "in_progress",
        /// Completed.
        Completed = "completed",
        /// Cancelled.
        Cancelled = "cancelled",
        /// Blocked.
        Blocked = "blocked",
    }
}

owned!(PlanStatus);
