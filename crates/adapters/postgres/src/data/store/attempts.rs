//! Attempts at writes and reverts, each a transaction.

use std::time::Duration;

use labdata_domain::{
    data::{
        revert::RevertReport,
        write::{WriteOutcome, WritePlan},
    },
    ids::OrganizationId,
};
use labdata_ports::data::{Attribution, RevertRequest, SourceFile, WriteError};

use super::PgDataStore;
use crate::{
    data::{
        apply,
        context::WriteContext,
        failure::Failure,
        history::Author,
        restore,
        revert::{RevertFailure, revert},
    },
    database::{
        errors::Attempts,
        pool::Connection,
        sql::{Schemas, literal},
        transaction,
    },
    files::{add_of_write, usage::lock_usage},
};

impl PgDataStore {
    async fn write_once(
        &self,
        context: &WriteContext<'_>,
        plan: &WritePlan,
        attribution: &Attribution,
        after_clash: Option<Duration>,
    ) -> Result<WriteOutcome, Failure> {
        let database = self.database.of(context.organization);
        let mut connection = database.connection().await?;
        let mut context = context.clone();
        let lock = self.first_locks(context.organization, after_clash);
        // The lock comes with BEGIN in one round trip; until the end no definition changes.
        transaction::begin_with(&mut connection, &lock).await?;
        let applied = self.apply_on(&mut connection, &mut context, plan, attribution);
        match applied.await {
            // A dry run does everything but commit, so that it reports what PostgreSQL would refuse as well.
            Ok(outcome) if plan.dry_run => {
                transaction::rollback(&mut connection).await;
                Ok(outcome)
            }
            Ok(outcome) => {
                transaction::commit(&mut connection).await?;
                // After the commit: this very transaction may have created the job.
                self.jobs
                    .remember(context.organization, &attribution.target);
                Ok(outcome)
            }
            Err(failure) => {
                transaction::rollback(&mut connection).await;
                Err(failure)
            }
        }
    }

    /// Applies a plan, and records the file that its rows come from.
    async fn apply_on(
        &self,
        connection: &mut Connection,
        context: &mut WriteContext<'_>,
        plan: &WritePlan,
        attribution: &Attribution,
    ) -> Result<WriteOutcome, Failure> {
        let source = attribution.source.as_ref().filter(|_| !plan.dry_run);
        // Before any row is locked, as `lock_usage` demands.
        if source.is_some_and(|source| source.quota.is_limited()) {
            lock_usage(connection, context.organization).await?;
        }
        let outcome = apply::apply(connection, context, plan, attribution, &self.jobs).await?;
        if let Some(SourceFile { file, quota }) = source {
            let recorded = add_of_write(connection, context.organization, file, *quota).await?;
            recorded.map_err(|refusal| Failure::from(WriteError::from(refusal)))?;
        }
        Ok(outcome)
    }

    /// Writes with as many attempts as clashes with other transactions need.
    pub(super) async fn write_until_done(
        &self,
        mut context: WriteContext<'_>,
        plan: &WritePlan,
        attribution: &Attribution,
    ) -> Result<WriteOutcome, WriteError> {
        let mut attempts = Attempts::default();
        let (mut contended, mut after_clash) = (None, None);
        loop {
            let written = self.write_once(&context, plan, attribution, after_clash);
            let failure = match written.await {
                Ok(outcome) => return Ok(outcome),
                Err(failure) => failure,
            };
            match &failure {
                // The same problems after matching again: no other writer caused them.
                Failure::Contended(problems) if contended.as_ref() == Some(problems) => {
                    return Err(failure.into());
                }
                Failure::Late(moment) => context.now = *moment,
                Failure::Contended(problems) => contended = Some(problems.clone()),
                // The job was remembered as there and has been deleted since: the next attempt creates it again.
                Failure::JobMissing => {
                    self.jobs.forget(context.organization, &attribution.target);
                }
                _ => {}
            }
            if !attempts.again(&failure).await {
                return Err(failure.into());
            }
            if after_clash.is_some() || matches!(failure, Failure::Clash(_)) {
                after_clash = Some(attempts.left());
            }
        }
    }

    pub(super) async fn revert_once(
        &self,
        organization: OrganizationId,
        request: &RevertRequest,
        after_clash: Option<Duration>,
    ) -> Result<RevertReport, RevertFailure> {
        let database = self.database.of(organization);
        let mut connection = database.connection().await?;
        let locks = self.first_locks(organization, after_clash);
        transaction::begin_with(&mut connection, &locks).await?;
        let result = async {
            let restore = request.restore.as_ref();
            // The lock prevents definitions from changing, so this snapshot stays current.
            let catalog = self
                .catalog
                .snapshot_on(&mut connection, organization)
                .await?;
            let mut context = WriteContext {
                organization,
                schemas: Schemas::of(organization),
                catalog: &catalog,
                execution: request.execution,
                rights: &request.rights,
                author: Author {
                    execution: restore.map(|restore| restore.undo.target.execution()),
                    is_undo: restore.is_some(),
                    restores: false,
                },
                now: request.now,
                stored: None,
            };
            match restore {
                None => revert(&mut connection, &mut context, request).await,
                Some(given) => {
                    restore::restore(&mut connection, &mut context, request, given).await
                }
            }
        }
        .await;
        match result {
            Ok(report) if request.dry_run => {
                transaction::rollback(&mut connection).await;
                Ok(report)
            }
            Ok(report) => {
                transaction::commit(&mut connection).await?;
                Ok(report)
            }
            Err(failure) => {
                transaction::rollback(&mut connection).await;
                Err(failure)
            }
        }
    }

    /// The statements that begin a write: the catalog lock, and after a clash the lock that lets those that clashed follow each
    /// other. Side by side they would lock the same rows in the same orders again, and clash again. First, as one that waits
    /// here must hold nothing; for no longer than the write has time left.
    fn first_locks(&self, organization: OrganizationId, after_clash: Option<Duration>) -> String {
        let lock = catalog_lock(organization);
        let Some(left) = after_clash else {
            return lock;
        };
        let name = literal(&format!("clashes {organization}"));
        let alone = format!("SELECT pg_advisory_xact_lock(labdata.lock_key({name}))");
        // A limit would last longer than a savepoint.
        if self.database.is_bound() {
            return format!("{alone}; {lock}");
        }
        let limit = left.as_millis().max(1);
        format!("SET LOCAL lock_timeout = {limit}; {alone}; {lock}")
    }
}

/// The statement that takes the organization's catalog lock, shared: definitions wait until the
/// transaction ends. A write may be long, so it says whose events it records.
fn catalog_lock(organization: OrganizationId) -> String {
    let name = literal(&crate::catalog::lock_name(organization));
    // Readers of events wait for open transactions: one that declares itself delays those of its organization only.
    let declare = crate::events::declare(organization);
    format!("SELECT pg_advisory_xact_lock_shared(labdata.lock_key({name})), {declare}")
}
