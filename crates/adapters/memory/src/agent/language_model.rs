//! A model that answers from a script.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures::{StreamExt, stream};
use labdata_domain::agent::{ModelAnswer, ModelFailure};
use labdata_ports::agent::{AnswerPart, AnswerStream, LanguageModel, ModelRequest};

/// What a [`ScriptedModel`] does with a request.
#[derive(Clone, Debug)]
pub enum ScriptedAnswer {
    /// It answers, word by word.
    Answer(ModelAnswer),
    /// It refuses the request.
    Refuse(ModelFailure),
    /// It sends a text, word by word, and fails then.
    Fail(String, ModelFailure),
    /// It sends a text, word by word, and nothing more: no end and no error.
    Hang(String),
}

/// A model that answers from a script, in order. Without a further answer it refuses.
#[derive(Clone, Debug, Default)]
pub struct ScriptedModel {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    script: VecDeque<ScriptedAnswer>,
    requests: Vec<ModelRequest>,
}

impl ScriptedModel {
    /// A model with that script.
    #[must_use]
    pub fn new(script: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        let model = Self::default();
        model.lock().script.extend(script);
        model
    }

    /// Adds an answer to the script.
    pub fn then(&self, answer: ScriptedAnswer) {
        self.lock().script.push_back(answer);
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
fn words(text: &str) -> Vec<Result<AnswerPart, ModelFailure>> {
    let mut words: Vec<String> = Vec::new();
    for letter in text.chars() {
        match words.last_mut() {
            Some(word) if letter != ' ' => word.push(letter),
            _ => words.push(letter.to_string()),
        }
    }
    words
        .into_iter()
        .map(|word| Ok(AnswerPart::Text(word)))
        .collect()
}

#[async_trait]
impl LanguageModel for ScriptedModel {
    fn check(&self) -> Result<(), ModelFailure> {
        Ok(())
    }

    async fn answer(&self, request: &ModelRequest) -> Result<AnswerStream, ModelFailure> {
        let mut state = self.lock();
        state.requests.push(request.clone());
        let answer = state.script.pop_front().unwrap_or_else(|| {
            ScriptedAnswer::Refuse(ModelFailure::Refused {
                status: 500,
                retry_after: None,
                message: "the script has no further answer".to_owned(),
            })
        });
        match answer {
            ScriptedAnswer::Answer(answer) => {
                let mut parts = words(&answer.text);
                parts.push(Ok(AnswerPart::End(answer)));
                Ok(stream::iter(parts).boxed())
            }
            ScriptedAnswer::Refuse(failure) => Err(failure),
            ScriptedAnswer::Fail(text, failure) => {
                let mut parts = words(&text);
                parts.push(Err(failure));
                Ok(stream::iter(parts).boxed())
            }
            ScriptedAnswer::Hang(text) => {
                Ok(stream::iter(words(&text)).chain(stream::pending()).boxed())
            }
        }
    }
}
