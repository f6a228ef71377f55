//! Start of a run: the organization's runs in progress, and its tokens of the month.

use time::{Date, Month as MonthName, OffsetDateTime, Time, UtcOffset};

use super::{AgentLimits, TooManyRuns, Usage};

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// Bytes of text that count as one token where a provider reports no usage.
const BYTES_PER_TOKEN: u64 = 4;

/// A month in UTC, for which tokens are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageMonth(Date);

impl UsageMonth {
    /// The month of that time.
    #[must_use]
    pub fn of(now: OffsetDateTime) -> Self {
        let today = now.to_offset(UtcOffset::UTC).date();
        // Every month has a first day.
        Self(today.replace_day(1).unwrap_or(today))
    }

    /// Its first day.
    #[must_use]
    pub const fn first_day(self) -> Date {
        self.0
    }

    /// The begin of the next month.
    #[must_use]
    pub fn end(self) -> OffsetDateTime {
        let (year, month) = match self.0.month() {
            MonthName::December => (self.0.year() + 1, MonthName::January),
            month => (self.0.year(), month.next()),
        };
        let first = Date::from_calendar_date(year, month, 1).unwrap_or(Date::MAX);
        OffsetDateTime::new_utc(first, Time::MIDNIGHT)
    }
}

/// Facts about an organization that decide whether it may start a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Number of its runs in progress, on all servers.
    pub in_progress: u32,
    /// Number of tokens that it has used this month.
    pub tokens_used: u64,
}

/// Refusal to start a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunRefusal {
    /// The organization has as many runs as it may.
    #[error(transparent)]
    TooMany(#[from] TooManyRuns),
    /// It has used its tokens of the month.
    #[error(
        "the organization has used its {tokens} tokens of this month; the agent runs again from {} (UTC)",
        resets_at.date()
    )]
    BudgetUsed {
        /// The budget.
        tokens: u64,
        /// When the next month begins.
        resets_at: OffsetDateTime,
        /// Seconds until then, rounded up.
        retry_after_seconds: u32,
    },
}

impl Refuse for RunRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            Self::TooMany(_) => ErrorCode::AgentRunsExceeded,
            Self::BudgetUsed { .. } => ErrorCode::TokenBudgetUsed,
        }
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Busy
    }

    fn retry_after_seconds(&self) -> Option<u32> {
        Some(Self::retry_after_seconds(self))
    }
}

/// Time after which a run that was one too many is to try again, in seconds.
const TRY_AGAIN: u32 = 10;

impl RunRefusal {
    /// Seconds after which a run may be allowed.
    #[must_use]
    pub const fn retry_after_seconds(&self) -> u32 {
        match self {
            Self::TooMany(_) => TRY_AGAIN,
            Self::BudgetUsed {
                retry_after_seconds,
                ..
            } => *retry_after_seconds,
        }
    }
}

impl AgentLimits {
    /// Checks that an organization may start a run.
    ///
    /// # Errors
    /// [`RunRefusal`].
    pub fn check_start(&self, facts: RunFacts, now: OffsetDateTime) -> Result<(), RunRefusal> {
        self.check_runs(facts.in_progress)?;
        let Some(tokens) = self.spent_budget(facts.tokens_used) else {
            return Ok(());
        };
        let resets_at = UsageMonth::of(now).end();
        // Rounded up, so that a client that waits exactly this long is not a moment too early.
        let seconds = (resets_at - now).whole_seconds() + 1;
        Err(RunRefusal::BudgetUsed {
            tokens,
            resets_at,
            retry_after_seconds: u32::try_from(seconds).unwrap_or(TRY_AGAIN),
        })
    }

    /// Returns the budget if that many tokens use it up.
    #[must_use]
    pub fn spent_budget(&self, tokens_used: u64) -> Option<u64> {
        self.monthly_tokens.filter(|budget| tokens_used >= *budget)
    }
}

/// The usage that counts against the budget for a request of that many bytes and its response: what the
/// provider reports, else an estimate. So a response that was cut off is not free.
#[must_use]
pub fn charged(reported: Usage, request_bytes: u64, response_bytes: u64) -> Usage {
    let reported = reported.with_total();
    if reported.total_tokens.is_some() {
        return reported;
    }
    // Without an estimate, a provider that reports no usage would never use up the budget.
    let input = reported
        .input_tokens
        .unwrap_or(request_bytes.div_ceil(BYTES_PER_TOKEN));
    let output = reported
        .output_tokens
        .unwrap_or(response_bytes.div_ceil(BYTES_PER_TOKEN));
    Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        total_tokens: None,
    }
    .with_total()
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-12-31 23:59:30 UTC);

    fn limits(monthly_tokens: Option<u64>) -> AgentLimits {
        AgentLimits {
            monthly_tokens,
            ..AgentLimits::default()
        }
    }

    fn facts(in_progress: u32, tokens_used: u64) -> RunFacts {
        RunFacts {
            in_progress,
            tokens_used,
        }
    }

    #[test]
    fn a_month_is_one_in_utc() {
        let month = UsageMonth::of(datetime!(2027-01-01 00:30 +01:00));
        assert_eq!(month.first_day(), date!(2026 - 12 - 01));
        assert_eq!(month.end(), datetime!(2027-01-01 00:00 UTC));
        let month = UsageMonth::of(datetime!(2024-02-29 12:00 UTC));
        assert_eq!(month.end(), datetime!(2024-03-01 00:00 UTC));
    }

    #[test]
    fn an_organization_starts_runs_until_its_tokens_are_used() {
        assert_eq!(limits(None).check_start(facts(3, u64::MAX), NOW), Ok(()));
        assert_eq!(limits(Some(100)).check_start(facts(0, 99), NOW), Ok(()));
        let refusal = limits(Some(100)).check_start(facts(0, 100), NOW);
        let refusal = refusal.unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "the organization has used its 100 tokens of this month; the agent runs again from \
             2027-01-01 (UTC)"
        );
        assert_eq!(refusal.retry_after_seconds(), 31);
    }

    #[test]
    fn an_organization_starts_no_fifth_run() {
        let refusal = limits(Some(0)).check_start(facts(4, 0), NOW);
        assert_eq!(refusal, Err(TooManyRuns(4).into()));
    }

    #[test]
    fn an_answer_without_reported_usage_is_estimated() {
        let reported = Usage {
            input_tokens: Some(7),
            output_tokens: None,
            total_tokens: None,
        };
        let total = |usage, response| charged(usage, 401, response).total_tokens;
        assert_eq!(total(reported, 1_000), Some(7));
        assert_eq!(total(Usage::default(), 9), Some(101 + 3));
        assert_eq!(total(Usage::default(), 0), Some(101));
    }
}
