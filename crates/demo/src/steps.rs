//! Progress lines: one per step.

use std::time::Instant;

/// Shows one line of the story.
pub type Say<'a> = &'a (dyn Fn(&str) + Sync);

/// Counts the steps and shows a line for each.
pub(crate) struct Steps<'a> {
    say: Say<'a>,
    count: u32,
    began: Instant,
}

impl<'a> Steps<'a> {
    /// Starts the clock of the first step.
    pub(crate) fn begin(say: Say<'a>) -> Self {
        Self {
            say,
            count: 0,
            began: Instant::now(),
        }
    }

    /// Shows a line that is not a step.
    pub(crate) fn say(&self, text: &str) {
        (self.say)(text);
    }

    /// Shows that a step succeeded, and starts the clock of the next one.
    pub(crate) fn done(&mut self, what: &str, result: &str) {
        self.count += 1;
        let milliseconds = self.began.elapsed().as_secs_f64() * 1000.0;
        self.say(&format!(
            "{:>3}. {what:<34} {milliseconds:>8.1} ms   {result}",
            self.count
        ));
        self.began = Instant::now();
    }
}
