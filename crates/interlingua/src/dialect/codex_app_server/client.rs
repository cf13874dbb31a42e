//! The requests of the client, if the stream contains them, and the responses of both sides.
//!
//! The methods of the two sides differ, and so do the fields of their responses. The ids do not:
//! both sides count from zero.

use super::agent_requests::request_id;
use super::decode::{ClientRequest, CodexAppServerDecoder, is_ignored};
use super::failures;
use super::items::text_of;
use super::turns;
use super::wire::{Message, Params};
use crate::dialect::Emitter;
use crate::dialect::json_rpc::Failure;
use crate::event::{Error, SessionUpdated, UserMessage};
use crate::json::read;
use crate::json::{Json, Text};

/// The number of requests of the client without a response that are remembered.
const MAX_PENDING: usize = 64;

impl CodexAppServerDecoder {
    /// Reads a request of the client.
    pub(super) fn read_client_request<'a>(
        &mut self,
        name: &str,
        id: &Text<'_>,
        params: &mut Params<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        self.client_seen = true;
        let request = if name == "turn/start" { ClientRequest::Turn } else { ClientRequest::Other };
        if self.client_requests.len() == MAX_PENDING {
            self.client_requests.remove(0);
        }
        self.client_requests.push((id.clone().into_owned(), request));
        let of_session = params.thread_id.as_ref().is_none_or(|id| self.threads.is_main(id));
        match name {
            // The agent reports the start of the turn; the prompt is emitted then.
            "turn/start" if of_session && !self.turn.open => {
                self.turn.prompt = Some(text_of(&params.input).into_owned());
                let (model, cwd) = (params.model.take(), params.cwd.take());
                if model.is_some() || cwd.is_some() {
                    out.emit(SessionUpdated { model, cwd, ..SessionUpdated::default() });
                }
                out.native("turn/start");
            }
            "turn/interrupt" if of_session && self.turn.open => {
                // The interruption is emitted when the turn ends with it.
                self.turn.interrupted = true;
                out.native("turn/interrupt");
            }
            // It may contain a key.
            "account/login/start" => out.native_without_text("account/login/start"),
            _ if is_ignored(name) => out.native(name.to_owned()),
            _ => out.unknown(Text::from(name.to_owned())),
        }
    }

    /// Reads a response of either side.
    pub(super) fn read_response<'a>(
        &mut self,
        message: &mut Message<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let (Some(id), true) = (&message.id, message.result.is_some() || message.error.is_some())
        else {
            // A result may also be a value other than an object.
            return match &message.id {
                Some(id) => {
                    self.take_request(id);
                    out.native("response");
                }
                None => out.unknown(Text::default()),
            };
        };
        if let Some(error) = &message.error {
            let failure = read::record_of::<Failure<'_>>(error).unwrap_or_default();
            return self.read_error_response(id, &failure, out);
        }
        let Some(result) = &mut message.result else { return };
        if self.agent_requests.emit_answer(id, result, out) {
            return;
        }
        self.take_request(id);
        // The response to `thread/read` contains no model, and opens no thread.
        if result.secret.is_some() {
            out.native_without_text("response");
        } else if result.thread.is_some() && result.model.is_some() {
            self.read_opened_thread(result, out);
        } else {
            out.native("response");
        }
    }

    fn read_error_response(
        &mut self,
        id: &Json<'_>,
        failure: &Failure<'_>,
        out: &mut Emitter<'_, '_>,
    ) {
        let request = self.take_request(id);
        let by_client = request.is_none() && self.client_seen;
        if by_client && self.agent_requests.emit_refusal(id, failure.message.as_ref(), out) {
            return;
        }
        let error = failures::response_error(failure);
        if request == Some(ClientRequest::Turn) && !self.turn.open {
            if let Some(text) = self.turn.prompt.take() {
                out.emit(UserMessage { text, ..UserMessage::default() });
            }
            out.emit(Error { fatal: true, ..error.clone() });
            self.seen_turns.insert(Box::default());
            return out.emit(turns::refused_turn(&error));
        }
        self.last_refusal = Some(owned(&error));
        out.emit(error);
    }

    fn take_request(&mut self, id: &Json<'_>) -> Option<ClientRequest> {
        let id = request_id(id);
        let at = self.client_requests.iter().position(|(pending, _)| *pending == id)?;
        Some(self.client_requests.remove(at).1)
    }
}

fn owned(error: &Error<'_>) -> Error<'static> {
    Error {
        class: error.class.clone(),
        message: error.message.clone().into_owned(),
        code: error.code.clone().map(Text::into_owned),
        ..Error::default()
    }
}
