//! Rows of the queue in memory, and logs.

use labdata_domain::{
    ids::OrganizationId,
    models::ReportTokenHash,
    people::run_nonce::RunNonce,
    work::{Lease, LogChunk},
};
use labdata_ports::models::Reported;
use time::OffsetDateTime;

/// Work that waits or runs. Work that has ended has no row.
#[derive(Clone, Debug)]
pub(crate) struct WorkRow {
    pub(crate) organization: OrganizationId,
    pub(crate) queued_at: OffsetDateTime,
    /// Number of claims so far.
    pub(crate) attempts: u32,
    pub(crate) lost_workers: u32,
    /// The hold on it, if it runs.
    pub(crate) lease: Option<Lease>,
    /// Nonce that the run exchanges for its key.
    pub(crate) nonce: Option<RunNonce>,
    /// Token with which the training reports.
    pub(crate) token: Option<ReportTokenHash>,
    /// Reports of the training so far.
    pub(crate) reported: Reported,
}

impl WorkRow {
    /// Work that waits since then.
    pub(crate) fn new(organization: OrganizationId, queued_at: OffsetDateTime) -> Self {
        Self {
            organization,
            queued_at,
            attempts: 0,
            lost_workers: 0,
            lease: None,
            nonce: None,
            token: None,
            reported: Reported::default(),
        }
    }

    /// Work that waits in place of lost work: attempts count on.
    pub(crate) fn retry(self) -> Self {
        Self {
            attempts: self.attempts,
            ..Self::new(self.organization, self.queued_at)
        }
    }

    /// Number of a new claim, which holds the work until that time.
    pub(crate) fn claim(&mut self, expires_at: OffsetDateTime) -> u32 {
        self.attempts += 1;
        self.lease = Some(Lease {
            attempt: self.attempts,
            expires_at,
        });
        self.attempts
    }

    /// Returns the work to the queue, without what was issued for the lease.
    pub(crate) fn release(&mut self) {
        *self = Self {
            attempts: self.attempts,
            lost_workers: self.lost_workers,
            ..Self::new(self.organization, self.queued_at)
        };
    }

    /// Returns true if the training reports with that token.
    pub(crate) fn has_token(&self, token: ReportTokenHash) -> bool {
        self.token.is_some_and(|own| own.matches(&token))
    }
}

/// The retained part of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// Number of the last claim, which may append.
    pub(crate) attempt: u32,
    pub(crate) length: u64,
    pub(crate) chunks: Vec<LogChunk>,
    pub(crate) deleted_at: Option<OffsetDateTime>,
}
