//! A reader of files that reads nothing.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use labdata_domain::instruments::{Reading, ReadingFailure};
use labdata_ports::instruments::{FileReader, ReadingRequest};

/// A reader that returns the readings of a script, in order. Without a further one it is unavailable.
#[derive(Clone, Debug, Default)]
pub struct ScriptedFileReader {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    readings: VecDeque<Reading>,
    requests: Vec<ReadingRequest>,
}

impl ScriptedFileReader {
    /// Adds a reading to the script.
    pub fn then(&self, reading: Reading) {
        self.lock().readings.push_back(reading);
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ReadingRequest> {
        self.lock().requests.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl FileReader for ScriptedFileReader {
    async fn read(&self, request: ReadingRequest) -> Result<Reading, ReadingFailure> {
        let mut state = self.lock();
        state.requests.push(request);
        state.readings.pop_front().ok_or_else(|| {
            ReadingFailure::Unavailable("the script has no further reading".to_owned())
        })
    }

    async fn prepare(&self) -> Result<(), ReadingFailure> {
        Ok(())
    }
}
