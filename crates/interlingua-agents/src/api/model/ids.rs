//! The ids of calls in a request. Those of another provider need not be unique.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{ApiKind, acceptable_id};
use crate::api::history::{Answer, Content, Item};

/// The ids of the calls that the messages of a request have so far.
///
/// Some servers number the calls of each response from zero, and take that back. Others reject a
/// request in which two calls have the same id. An id depends only on what is before it, so that
/// every request repeats the ids of the one before.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    taken: HashSet<String>,
    /// The ids of the calls of the last answer that have another one than the history, by position.
    renamed: Vec<Option<String>>,
}

impl CallIds {
    /// The next item of the history, with ids that no call before it has. An answer that is sent back
    /// as the provider wrote it stays as it is.
    pub(crate) fn distinct<'i>(
        &mut self,
        item: &'i Item,
        api: ApiKind,
        model: &str,
    ) -> Cow<'i, Item> {
        match item {
            Item::User(_) => Cow::Borrowed(item),
            Item::Answer(answer) => {
                self.renamed = match answer.native_for(api, model) {
                    Some(_) => {
                        self.taken.extend(answer.calls().map(|call| call.id.clone()));
                        Vec::new()
                    }
                    None => answer.calls().map(|call| self.take(&call.id)).collect(),
                };
                if !self.has_renamed() {
                    return Cow::Borrowed(item);
                }
                Cow::Owned(Item::Answer(self.rename(answer)))
            }
            Item::Results(_) if !self.has_renamed() => Cow::Borrowed(item),
            // They are in the order of the calls.
            Item::Results(results) => {
                let mut results = results.clone();
                for (result, id) in results.iter_mut().zip(&self.renamed) {
                    result.call = id.clone().unwrap_or_else(|| result.call.clone());
                }
                Cow::Owned(Item::Results(results))
            }
        }
    }

    fn has_renamed(&self) -> bool {
        self.renamed.iter().any(Option::is_some)
    }

    /// Takes an id; returns another one if a call has it already.
    fn take(&mut self, id: &str) -> Option<String> {
        let id = acceptable_id(id);
        if self.taken.insert(id.clone().into_owned()) {
            return None;
        }
        let numbered = (2..).map(|number: u64| format!("{id}_{number}"));
        let mut free = numbered.map(|id| acceptable_id(&id).into_owned());
        free.find(|id| self.taken.insert(id.clone()))
    }

    fn rename(&self, answer: &Answer) -> Answer {
        let mut content = answer.content.clone();
        let calls = content.iter_mut().filter_map(|content| match content {
            Content::Call(call) => Some(call),
            Content::Text(_) => None,
        });
        for (call, id) in calls.zip(&self.renamed) {
            call.id = id.clone().unwrap_or_else(|| call.id.clone());
        }
        Answer { content, native: None }
    }
}
