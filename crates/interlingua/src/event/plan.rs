//! The plan: what the agent means to do, as a whole list every time.

use super::open::open_enum;
use super::payload::{owned, payload};
use crate::json::{Json, Text};

payload! {
    /// The plan is now this.
    pub struct PlanUpdated<'a> {
        /// The agent's id for the plan; the same for every update of one list.
        pub plan: Option<Text<'a>>,
        /// The tool call that wrote the whole list, where one did.
        pub call: Option<Text<'a>>,
        /// All steps, in order. None means that the plan was cleared.
        pub items: Vec<PlanItem<'a>>,
    }
}

payload! {
    /// One step.
    pub listed struct PlanItem<'a> {
        /// The agent's id for it.
        pub id: Option<Text<'a>>,
        /// What is to be done.
        pub text: Text<'a>,
        /// How far it is.
        pub status: PlanStatus,
        /// How far it is, in the agent's own form, where that says less or more.
        pub raw_status: Option<Json<'a>>,
        /// What to show while it is being done.
        pub active_form: Option<Text<'a>>,
        /// How much it matters, in the agent's word.
        pub priority: Option<Text<'a>>,
    }
}

open_enum! {
    /// How far a step is.
    #[derive(Default)]
    pub enum PlanStatus {
        /// Not begun.
        #[default]
        Pending = "pending",
        /// Being done.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
        /// Given up.
        Cancelled = "cancelled",
        /// Waiting for something.
        Blocked = "blocked",
    }
}

owned!(PlanStatus);
