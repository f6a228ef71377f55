//! A progress line for each step.

use std::time::Instant;

use crate::commands::say;

/// Counts the steps and says how each went.
pub(crate) struct Steps {
    count: u32,
    began: Instant,
}

impl Steps {
    /// Before the first step.
    pub(crate) fn begin() -> Self {
        Self {
            count: 0,
            began: Instant::now(),
        }
    }

    /// A step succeeded; the next one begins.
    pub(crate) fn done(&mut self, what: &str, result: &str) {
        self.count += 1;
        let milliseconds = self.began.elapsed().as_secs_f64() * 1000.0;
        say(&format!(
            "{:>3}. {what:<34} {milliseconds:>8.1} ms   {result}",
            self.count
        ));
        self.began = Instant::now();
    }
}
