//! A sandbox of snippets that runs nothing.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use labdata_domain::agent::{PythonOutcome, PythonUnavailable};
use labdata_ports::agent::{PythonSandbox, PythonSnippet};

/// A sandbox that ends snippets by a script, in order, without running them. Without a further outcome it
/// is unavailable.
#[derive(Clone, Debug, Default)]
pub struct ScriptedPython {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    outcomes: VecDeque<PythonOutcome>,
    snippets: Vec<PythonSnippet>,
}

impl ScriptedPython {
    /// Adds an outcome to the script.
    pub fn then(&self, outcome: PythonOutcome) {
        self.lock().outcomes.push_back(outcome);
    }

    /// The snippets so far.
    #[must_use]
    pub fn snippets(&self) -> Vec<PythonSnippet> {
        self.lock().snippets.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl PythonSandbox for ScriptedPython {
    async fn run(&self, snippet: PythonSnippet) -> Result<PythonOutcome, PythonUnavailable> {
        let mut state = self.lock();
        state.snippets.push(snippet);
        state.outcomes.pop_front().ok_or_else(|| {
            PythonUnavailable::Unavailable("the script has no further outcome".to_owned())
        })
    }
}
