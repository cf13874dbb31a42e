//! The client's side, where it is in the stream too, and the answers of both sides.
//!
//! A message says by its shape whose it is: the methods of the two sides differ, and so do their
//! answers. The ids do not: both sides count from zero.

use super::asked::request_id;
use super::decode::{CodexAppServerDecoder, Request, is_left_out};
use super::failures;
use super::items::text_of;
use super::turns;
use super::wire::{Message, Params};
use crate::dialect::Emitter;
use crate::dialect::json_rpc::Failure;
use crate::event::{Error, SessionUpdated, UserMessage};
use crate::json::read;
use crate::json::{Json, Text};

/// How many requests of the client are remembered until they are answered.
const REMEMBERED: usize = 64;

impl CodexAppServerDecoder {
    /// A request of the client's.
    pub(super) fn client_asks<'a>(
        &mut self,
        name: &str,
        id: &Text<'_>,
        params: &mut Params<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        self.client_heard = true;
        let request = if name == "turn/start" { Request::Turn } else { Request::Other };
        if self.requests.len() == REMEMBERED {
            self.requests.remove(0);
        }
        self.requests.push((id.clone().into_owned(), request));
        let of_session = params.thread_id.as_ref().is_none_or(|id| self.threads.is_main(id));
        match name {
            // The agent says when it begins; what it is to do is told then.
            "turn/start" if of_session && !self.turn.open => {
                self.turn.prompt = Some(text_of(&params.input).into_owned());
                let (model, cwd) = (params.model.take(), params.cwd.take());
                if model.is_some() || cwd.is_some() {
                    out.emit(SessionUpdated { model, cwd, ..SessionUpdated::default() });
                }
                out.native("turn/start");
            }
            "turn/interrupt" if of_session && self.turn.open => {
                // It is told when it has come to that.
                self.turn.interrupted = true;
                out.native("turn/interrupt");
            }
            // What is in it may be a key.
            "account/login/start" => out.native_without_text("account/login/start"),
            _ if is_left_out(name) => out.native(name.to_owned()),
            _ => out.unknown(Text::from(name.to_owned())),
        }
    }

    /// The answer of either side.
    pub(super) fn response<'a>(&mut self, message: &mut Message<'a>, out: &mut Emitter<'_, 'a>) {
        let (Some(id), true) = (&message.id, message.result.is_some() || message.error.is_some())
        else {
            // An answer may also be a value that is no object.
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
            return self.refused(id, &failure, out);
        }
        let Some(answer) = &mut message.result else { return };
        if self.asked.answer(id, answer, out) {
            return;
        }
        self.take_request(id);
        // Of a thread that is only read, the model is not told.
        if answer.secret.is_some() {
            out.native_without_text("response");
        } else if answer.thread.is_some() && answer.model.is_some() {
            self.thread_opened(answer, out);
        } else {
            out.native("response");
        }
    }

    fn refused(&mut self, id: &Json<'_>, failure: &Failure<'_>, out: &mut Emitter<'_, '_>) {
        let request = self.take_request(id);
        let by_client = request.is_none() && self.client_heard;
        if by_client && self.asked.refuse(id, failure.message.as_ref(), out) {
            return;
        }
        let error = failures::refusal(failure);
        if request == Some(Request::Turn) && !self.turn.open {
            if let Some(text) = self.turn.prompt.take() {
                out.emit(UserMessage { text, ..UserMessage::default() });
            }
            out.emit(Error { fatal: true, ..error.clone() });
            self.told_turns.insert(Box::default());
            return out.emit(turns::refused(&error));
        }
        self.refused = Some(owned(&error));
        out.emit(error);
    }

    fn take_request(&mut self, id: &Json<'_>) -> Option<Request> {
        let id = request_id(id);
        let at = self.requests.iter().position(|(request, _)| *request == id)?;
        Some(self.requests.remove(at).1)
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
