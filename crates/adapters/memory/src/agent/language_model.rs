//! A model that responds from a script.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures::{StreamExt, stream};
use labdata_domain::agent::{ModelFailure, ModelResponse};
use labdata_ports::agent::{LanguageModel, ModelRequest, ResponsePart, ResponseStream};

/// Reaction of a [`ScriptedModel`] to a request.
#[derive(Clone, Debug)]
pub enum ScriptedResponse {
    /// It responds, word by word.
    Response(ModelResponse),
    /// It refuses the request.
    Refuse(ModelFailure),
    /// It sends a text, word by word, and fails then.
    Fail(String, ModelFailure),
    /// It sends a text, word by word, and nothing more: no end and no error.
    Hang(String),
}

/// A model that responds from a script, in order. Without a further response it refuses.
#[derive(Clone, Debug, Default)]
pub struct ScriptedModel {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    script: VecDeque<ScriptedResponse>,
    requests: Vec<ModelRequest>,
}

impl ScriptedModel {
    /// A model with that script.
    #[must_use]
    pub fn new(script: impl IntoIterator<Item = ScriptedResponse>) -> Self {
        let model = Self::default();
        model.lock().script.extend(script);
        model
    }

    /// Adds a response to the script.
    pub fn then(&self, response: ScriptedResponse) {
        self.lock().script.push_back(response);
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.lock().requests.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The words of a text, each with the space before it.
fn words(text: &str) -> Vec<Result<ResponsePart, ModelFailure>> {
    let mut words: Vec<String> = Vec::new();
    for letter in text.chars() {
        match words.last_mut() {
            Some(word) if letter != ' ' => word.push(letter),
            _ => words.push(letter.to_string()),
        }
    }
    words
        .into_iter()
        .map(|word| Ok(ResponsePart::Text(word)))
        .collect()
}

#[async_trait]
impl LanguageModel for ScriptedModel {
    fn check(&self) -> Result<(), ModelFailure> {
        Ok(())
    }

    async fn response(&self, request: &ModelRequest) -> Result<ResponseStream, ModelFailure> {
        let mut state = self.lock();
        state.requests.push(request.clone());
        let response = state.script.pop_front().unwrap_or_else(|| {
            ScriptedResponse::Refuse(ModelFailure::Refused {
                status: 500,
                retry_after: None,
                message: "the script has no further answer".to_owned(),
            })
        });
        match response {
            ScriptedResponse::Response(response) => {
                let mut parts = words(&response.text);
                parts.push(Ok(ResponsePart::End(response)));
                Ok(stream::iter(parts).boxed())
            }
            ScriptedResponse::Refuse(failure) => Err(failure),
            ScriptedResponse::Fail(text, failure) => {
                let mut parts = words(&text);
                parts.push(Err(failure));
                Ok(stream::iter(parts).boxed())
            }
            ScriptedResponse::Hang(text) => {
                Ok(stream::iter(words(&text)).chain(stream::pending()).boxed())
            }
        }
    }
}
