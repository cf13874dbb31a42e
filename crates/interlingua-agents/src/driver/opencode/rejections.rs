//! Permission requests that are denied.
//!
//! The server rejects all other requests of a session with the first one, so rejections wait until
//! every request of their session is decided.

use serde_json::json;

use super::{OpencodeDriver, Purpose, Step, segment};
use crate::driver::json_rpc::set;

/// A permission request, and the reason for which it was denied.
#[derive(Debug)]
pub(super) struct PermissionRequest {
    pub(super) id: String,
    pub(super) session: String,
    pub(super) denied: Option<String>,
}

impl OpencodeDriver {
    /// Sends the rejections of a session whose requests are all decided.
    pub(super) fn reject_decided(&mut self, session: &str, steps: &mut Vec<Step>) {
        let of_session = |request: &&PermissionRequest| request.session == session;
        if self.requests.iter().filter(of_session).any(|request| request.denied.is_none()) {
            return;
        }
        let mut denied = Vec::new();
        self.requests.retain(|request| match &request.denied {
            Some(reason) if request.session == session => {
                denied.push((request.id.clone(), reason.clone()));
                false
            }
            _ => true,
        });
        let mut reasons: Vec<&str> = denied.iter().map(|(_, reason)| &**reason).collect();
        reasons.dedup();
        let reason = reasons.join("; ");
        let mut denied = denied.into_iter();
        if let Some((id, _)) = denied.next() {
            self.reject(&id, &reason, denied.collect(), steps);
        }
    }

    pub(super) fn reject(
        &mut self,
        request: &str,
        reason: &str,
        rest: Vec<(String, String)>,
        steps: &mut Vec<Step>,
    ) {
        let path = format!("/permission/{}/reply", segment(request));
        let mut body = json!({"reply": "reject"});
        if !reason.is_empty() {
            set(&mut body, "message", reason);
        }
        self.send(Purpose::Reject(rest), "POST", &path, Some(body), steps);
    }
}
