//! A progress line for each step.

use std::time::Instant;

/// Shows one line of the story.
pub type Say<'a> = &'a (dyn Fn(&str) + Sync);

/// Counts the steps and says how each went.
pub(crate) struct Steps<'a> {
    say: Say<'a>,
    count: u32,
    began: Instant,
}

impl<'a> Steps<'a> {
    /// Before the first step.
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

    /// A step succeeded; the next one begins.
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
