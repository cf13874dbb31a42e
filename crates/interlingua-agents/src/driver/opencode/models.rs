//! The models of the server, and their names.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{OpencodeDriver, Step};

impl OpencodeDriver {
    /// Keeps the model before, if the server does not have the one that was selected.
    pub(super) fn check_model(
        &mut self,
        body: &str,
        before: Option<String>,
        steps: &mut Vec<Step>,
    ) {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            providers: Vec<Provider<'a>>,
        }
        #[derive(Deserialize)]
        struct Provider<'a> {
            id: String,
            #[serde(borrow)]
            models: HashMap<String, &'a RawValue>,
        }
        let Ok(known) = serde_json::from_str::<Body<'_>>(body) else { return };
        let Some(model) = self.settings.model.clone() else { return };
        let is_known = split_model(&model).is_some_and(|(provider, model)| {
            let mut providers = known.providers.iter();
            providers.any(|known| known.id == provider && known.models.contains_key(model))
        });
        if !is_known {
            self.settings.model = before;
            steps
                .push(Step::warn(format!("OpenCode has no model {model}; the model is unchanged")));
        }
    }
}

/// The provider and the name of a model.
pub(super) fn split_model(model: &str) -> Option<(&str, &str)> {
    model.split_once('/').filter(|(provider, model)| !provider.is_empty() && !model.is_empty())
}
