//! Tokens, reports and backends of trainings.

use async_trait::async_trait;
use diesel::{prelude::*, upsert::excluded};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    files::ObjectKey,
    ids::{DatasetId, ModelVersionId, OrganizationId},
    models::{ReportTokenHash, TRAINING_BACKEND_LIFETIME, TrainingBackend, TrainingReport},
    work::WorkId,
};
use labdata_ports::{
    PortError,
    models::{ExchangedTraining, Reported, TrainingStore},
    work::WorkClaim,
};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, port_error, retried, transacted},
        listen::{Channel, notify_of},
        pool::{Connection, Database},
    },
    models::version_rows::{json, progress_json},
    schema::{ml_model_version, training_attempt, training_backend, work},
    work::rows::holds,
};

/// Tokens, reports and backends of trainings in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgTrainingStore {
    database: Database,
}

impl PgTrainingStore {
    /// The store in that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

async fn begin(
    connection: &mut Connection,
    claim: WorkClaim,
    token: ReportTokenHash,
    artifact: ObjectKey,
) -> Result<bool, Fault> {
    // Locked until the token is stored: the lease cannot end in between, and its end deletes the token.
    if !holds(connection, claim).await? {
        return Ok(false);
    }
    let attempt = (
        training_attempt::model_version_id.eq(claim.work.as_uuid()),
        training_attempt::organization_id.eq(claim.organization.as_uuid()),
        training_attempt::token_hash.eq(token.0.to_vec()),
        training_attempt::artifact_key.eq(artifact.as_uuid()),
    );
    diesel::insert_into(training_attempt::table)
        .values(attempt)
        .on_conflict(training_attempt::model_version_id)
        .do_update()
        .set((
            training_attempt::token_hash.eq(excluded(training_attempt::token_hash)),
            training_attempt::artifact_key.eq(excluded(training_attempt::artifact_key)),
            // What a lost attempt reported says nothing about this one.
            training_attempt::result.eq(None::<Value>),
            training_attempt::error.eq(None::<Value>),
        ))
        .execute(connection)
        .await?;
    Ok(true)
}

/// Returns the organization of the version if its training reports with that token.
async fn holder(
    connection: &mut Connection,
    version: ModelVersionId,
    token: ReportTokenHash,
) -> Result<Option<OrganizationId>, Fault> {
    let stored: Option<(Uuid, Vec<u8>)> = training_attempt::table
        .find(version.as_uuid())
        .select((
            training_attempt::organization_id,
            training_attempt::token_hash,
        ))
        .first(connection)
        .await
        .optional()?;
    Ok(stored
        .filter(|(_, hash)| is_token(hash, token))
        .map(|(organization, _)| OrganizationId::new(organization)))
}

/// Returns true if the stored hash is that of the token.
fn is_token(stored: &[u8], token: ReportTokenHash) -> bool {
    let stored: Result<[u8; 32], _> = stored.try_into();
    stored.is_ok_and(|hash| ReportTokenHash(hash).matches(&token))
}

async fn exchange_token(
    connection: &mut Connection,
    version: ModelVersionId,
    presented: ReportTokenHash,
    fresh: ReportTokenHash,
) -> Result<Option<ExchangedTraining>, Fault> {
    let id = version.as_uuid();
    let attempt: Option<(Uuid, Vec<u8>, Uuid)> = training_attempt::table
        .find(id)
        .select((
            training_attempt::organization_id,
            training_attempt::token_hash,
            training_attempt::artifact_key,
        ))
        // Of two racing exchanges of one token, the second finds the fresh hash and is refused.
        .for_update()
        .first(connection)
        .await
        .optional()?;
    let Some((organization, stored, artifact)) = attempt else {
        return Ok(None);
    };
    if !is_token(&stored, presented) {
        return Ok(None);
    }
    diesel::update(training_attempt::table.find(id))
        // Replaces the token that others on the backend may have seen: it is of no use from here on.
        .set(training_attempt::token_hash.eq(fresh.0.to_vec()))
        .execute(connection)
        .await?;
    let dataset: Uuid = ml_model_version::table
        .find(id)
        .select(ml_model_version::dataset_id)
        .first(connection)
        .await?;
    Ok(Some(ExchangedTraining {
        organization: OrganizationId::new(organization),
        dataset: DatasetId::new(dataset),
        artifact: ObjectKey::new(artifact),
    }))
}

async fn report(
    connection: &mut Connection,
    version: ModelVersionId,
    token: ReportTokenHash,
    report: &TrainingReport,
) -> Result<bool, Fault> {
    let id = version.as_uuid();
    // A caller without a token locks nothing.
    if holder(connection, version, token).await?.is_none() {
        return Ok(false);
    }
    // The work before the version, as everywhere: until the transaction ends, the lease does not.
    work::table
        .find(WorkId::Training(version).as_uuid())
        .select(work::id)
        .for_share()
        .first::<Uuid>(connection)
        .await
        .optional()?;
    // The lease may have ended before the lock was obtained.
    if holder(connection, version, token).await?.is_none() {
        return Ok(false);
    }
    let attempt = training_attempt::table.find(id);
    match report {
        TrainingReport::Progress(progress) => {
            diesel::update(ml_model_version::table.find(id))
                .set(ml_model_version::progress.eq(Some(progress_json(progress)?)))
                .execute(connection)
                .await?
        }
        TrainingReport::Result(result) => {
            diesel::update(attempt)
                .set(training_attempt::result.eq(Some(json(result)?)))
                .execute(connection)
                .await?
        }
        TrainingReport::Error(error) => {
            diesel::update(attempt)
                .set(training_attempt::error.eq(Some(json(error)?)))
                .execute(connection)
                .await?
        }
    };
    // Sent at the commit, so that a follower who reads then sees the report.
    notify_of(connection, Channel::WorkChanged, &[id]).await?;
    Ok(true)
}

/// Object, result and error of an attempt.
type AttemptRow = (Uuid, Option<Value>, Option<Value>);

async fn reported(
    connection: &mut Connection,
    claim: WorkClaim,
) -> Result<Option<Reported>, Fault> {
    if !holds(connection, claim).await? {
        return Ok(None);
    }
    let row: Option<AttemptRow> = training_attempt::table
        .find(claim.work.as_uuid())
        .select((
            training_attempt::artifact_key,
            training_attempt::result,
            training_attempt::error,
        ))
        .first(connection)
        .await
        .optional()?;
    // A worker that holds a training may find nothing: it was claimed, and its preparation failed.
    let Some((artifact, result, error)) = row else {
        return Ok(Some(Reported::default()));
    };
    let broken = |column| corrupt("training_attempt", column, claim.work);
    Ok(Some(Reported {
        artifact: Some(ObjectKey::new(artifact)),
        result: result
            .map(serde_json::from_value)
            .transpose()
            .map_err(|_| broken("result"))?,
        error: error
            .map(serde_json::from_value)
            .transpose()
            .map_err(|_| broken("error"))?,
    }))
}

#[async_trait]
impl TrainingStore for PgTrainingStore {
    async fn begin(
        &self,
        claim: WorkClaim,
        token: ReportTokenHash,
        artifact: ObjectKey,
    ) -> Result<bool, PortError> {
        Ok(transacted!(self.database, connection => begin(connection, claim, token, artifact))?)
    }

    async fn holder(
        &self,
        version: ModelVersionId,
        token: ReportTokenHash,
    ) -> Result<Option<OrganizationId>, PortError> {
        let mut connection = self.database.connection().await?;
        Ok(holder(&mut connection, version, token).await?)
    }

    async fn exchange_token(
        &self,
        version: ModelVersionId,
        presented: ReportTokenHash,
        fresh: ReportTokenHash,
    ) -> Result<Option<ExchangedTraining>, PortError> {
        Ok(
            transacted!(self.database, connection => exchange_token(connection, version, presented, fresh))?,
        )
    }

    async fn report(
        &self,
        version: ModelVersionId,
        token: ReportTokenHash,
        sent: &TrainingReport,
    ) -> Result<bool, PortError> {
        Ok(transacted!(self.database, connection => report(connection, version, token, sent))?)
    }

    async fn reported(&self, claim: WorkClaim) -> Result<Option<Reported>, PortError> {
        Ok(transacted!(self.database, connection => reported(connection, claim))?)
    }

    async fn record_backend(&self, backend: &TrainingBackend) -> Result<(), PortError> {
        retried!(async {
            let mut connection = self.database.connection().await?;
            diesel::insert_into(training_backend::table)
                .values((
                    training_backend::worker_id.eq(backend.worker),
                    training_backend::checked_at.eq(backend.checked_at),
                    training_backend::missing.eq(&backend.missing),
                ))
                .on_conflict(training_backend::worker_id)
                .do_update()
                .set((
                    training_backend::checked_at.eq(excluded(training_backend::checked_at)),
                    training_backend::missing.eq(excluded(training_backend::missing)),
                ))
                .execute(&mut connection)
                .await?;
            // No sweeper: each check removes the entries of workers that have stopped.
            let outdated = backend.checked_at - TRAINING_BACKEND_LIFETIME;
            let outdated =
                training_backend::table.filter(training_backend::checked_at.lt(outdated));
            diesel::delete(outdated).execute(&mut connection).await?;
            Ok::<_, Fault>(())
        })?;
        Ok(())
    }

    async fn backends(&self) -> Result<Vec<TrainingBackend>, PortError> {
        let mut connection = self.database.connection().await?;
        let rows: Vec<(Uuid, OffsetDateTime, Option<String>)> = training_backend::table
            .select((
                training_backend::worker_id,
                training_backend::checked_at,
                training_backend::missing,
            ))
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let backends = rows.into_iter();
        let backends = backends.map(|(worker, checked_at, missing)| TrainingBackend {
            worker,
            checked_at,
            missing,
        });
        Ok(backends.collect())
    }
}
