//! Work of both kinds for clauses.

use labdata_domain::{
    files::ObjectKey,
    ids::{ExecutionId, JobId, ModelId, ModelVersionId, OrganizationId, UserId},
    models::{
        Artifact, ModelVersion, NewModel, NewVersion, ProblemType, QualityPreset, TaskType,
        TrainingEnd, TrainingPlan, TrainingResult,
    },
    people::run_key::most_run_scopes,
    storage::StorageQuota,
    work::{FreeSlots, NewRun, RunEnd, WorkEnd, WorkId, WorkKind, WorkRecord},
};
use labdata_ports::{
    files::FileRepository,
    models::{DatasetRepository, ModelRepository},
    work::{
        ClaimTerms, ClaimedWork, ExpiredWork, HeldWork, LostWork, WorkClaim, WorkQueue,
        logs::WorkLogStore,
    },
};
use serde_json::json;
use time::{Duration, OffsetDateTime};

use crate::{given, lab::lab};

/// Timeout of a run in clauses.
pub const TIMEOUT: Duration = Duration::minutes(60);

/// Lease of a claim in clauses. None takes as long as that.
pub const LEASE: Duration = Duration::HOUR;

/// Terms of a claim at that time.
#[must_use]
pub const fn terms(now: OffsetDateTime) -> ClaimTerms {
    ClaimTerms {
        now,
        lease: LEASE,
        timeout: TIMEOUT,
    }
}

/// A run that is not queued yet, of no file and without parameters.
#[must_use]
pub fn new_run(job: JobId, user: UserId, queued_at: OffsetDateTime) -> NewRun {
    NewRun {
        id: ExecutionId::new(given::uuid()),
        job,
        script_version: 3,
        trigger_file: None,
        parameters: serde_json::Map::new(),
        source: None,
        started_by: user,
        api_key: None,
        trigger: None,
        scopes: most_run_scopes(),
        queued_at,
    }
}

/// The plan of a training.
pub(crate) fn plan() -> TrainingPlan {
    TrainingPlan {
        target: "Rebsorte \"2\"".to_owned(),
        features: vec!["alcohol".to_owned(), "µ".to_owned()],
        images: vec!["label".to_owned()],
        task: TaskType::Multimodal,
        problem: ProblemType::Multiclass,
        preset: QualityPreset::Good,
    }
}

/// The result of a training, with every field.
pub(crate) fn result() -> TrainingResult {
    let result = json!({
        "problem_type": "multiclass",
        "classes": [0, 1.5, "Süd \"2\"", true],
        "metrics": {
            "accuracy": {"value": 0.972_222_222_222_222_2, "higher_is_better": true},
            "log_loss": {"value": 1e-7, "higher_is_better": false},
        },
        "primary_metric": "accuracy",
        "leaderboard": [
            {"model": "LightGBM", "score": 0.97, "validation_score": null, "fit_seconds": 1.5, "predict_seconds": 0.01},
        ],
        "feature_importance": [{"feature": "µ", "importance": 0.2, "stddev": null}],
        "confusion_matrix": {"labels": ["a", "b"], "counts": [[10, 1], [0, 9]]},
        "residuals": [{"actual": 0.1, "predicted": -0.3}],
        "rows": {"train": 142, "test": 36},
        "features": [
            {"name": "µ", "data_type": "string", "nullable": true, "levels": ["x", "y"]},
            {"name": "label", "data_type": "image", "nullable": false, "levels": null},
        ],
        "versions": {"python": "3.12.1"},
        "artifact": {"sha256": "0b".repeat(32), "size": 12_345},
    });
    TrainingResult::from_json(result).unwrap()
}

/// The end of a successful training, with a new artifact.
pub(crate) fn trained() -> TrainingEnd {
    let result = result();
    let artifact = Artifact {
        object: ObjectKey::new(given::uuid()),
        sha256: result.artifact.sha256,
        size: result.artifact.size,
    };
    TrainingEnd::Ready(Box::new(result), artifact)
}

/// The end of successful work.
pub(crate) fn success(kind: WorkKind) -> WorkEnd {
    match kind {
        WorkKind::Run => WorkEnd::Run(RunEnd::exited(0, "")),
        WorkKind::Training => WorkEnd::Training(trained()),
    }
}

/// The end of work that failed.
pub(crate) fn failure(kind: WorkKind) -> WorkEnd {
    match kind {
        WorkKind::Run => WorkEnd::Run(RunEnd::exited(1, "ValueError: no wells")),
        WorkKind::Training => {
            let error = "the target \"y\" has one value".to_owned();
            WorkEnd::Training(TrainingEnd::Failed(error))
        }
    }
}

/// Ends the lease of a claim, and takes the work from its holder at that time.
pub(crate) async fn lose(
    queue: &dyn WorkQueue,
    claim: WorkClaim,
    now: OffsetDateTime,
) -> ExpiredWork {
    assert!(queue.renew(claim, Duration::ZERO).await.unwrap());
    expire_given_up(queue, now).await
}

/// Takes the work that was given up from its holders.
pub(crate) async fn expire_given_up(queue: &dyn WorkQueue, now: OffsetDateTime) -> ExpiredWork {
    let mut held = queue.held().await.unwrap();
    held.retain(|held| held.lease.is_given_up());
    expire(queue, &held, now).await
}

/// Takes that work from its holders, unless a lease has changed since.
pub(crate) async fn expire(
    queue: &dyn WorkQueue,
    held: &[HeldWork],
    now: OffsetDateTime,
) -> ExpiredWork {
    let lost: Vec<LostWork> = held
        .iter()
        .map(|held| LostWork {
            held: *held,
            retry: ExecutionId::new(given::uuid()),
        })
        .collect();
    queue.expire(now, &lost).await.unwrap()
}

lab!(
    /// A queue with work of both kinds.
    pub struct WorkLab {
        /// The queue.
        pub work: dyn WorkQueue,
        /// Models, whose versions are trained.
        pub models: dyn ModelRepository,
        /// Datasets that they learn from.
        pub datasets: dyn DatasetRepository,
        /// Logs of work.
        pub logs: dyn WorkLogStore,
        /// Files, and usage.
        pub files: dyn FileRepository,
    }
);

impl WorkLab {
    /// Work of an organization that waits since then: a run of a job, or a training of a new model.
    pub(crate) async fn queued(
        &self,
        kind: WorkKind,
        organization: OrganizationId,
        queued_at: OffsetDateTime,
    ) -> WorkRecord {
        let user = self.user(organization, "somebody@example.org").await.id;
        match kind {
            WorkKind::Run => {
                let job = self.job(organization, "some job").await.id;
                let run = new_run(job, user, queued_at);
                let queued = self.executions.queue(organization, &run).await;
                WorkRecord::Run(Box::new(queued.unwrap()))
            }
            WorkKind::Training => {
                let model = NewModel {
                    id: ModelId::new(given::uuid()),
                    name: format!("model {}", given::uuid()),
                };
                let version = self.version(organization, user, queued_at).await;
                let created = self.models.create(organization, &model, &version).await;
                WorkRecord::Training(Box::new(created.unwrap()))
            }
        }
    }

    /// A version that is not stored yet.
    async fn version(
        &self,
        organization: OrganizationId,
        user: UserId,
        requested_at: OffsetDateTime,
    ) -> NewVersion {
        let dataset = given::dataset("wines", user, requested_at);
        let quota = StorageQuota::UNLIMITED;
        let added = self.datasets.add(organization, &dataset, quota).await;
        added.unwrap();
        NewVersion {
            id: ModelVersionId::new(given::uuid()),
            description: None,
            dataset: dataset.id,
            plan: plan(),
            requested_by: user,
            requested_at,
        }
    }

    /// Claims work for those slots.
    pub(crate) async fn claim_for(
        &self,
        kind: WorkKind,
        slots: FreeSlots,
        now: OffsetDateTime,
    ) -> Vec<ClaimedWork> {
        self.work.claim(kind, slots, terms(now)).await.unwrap()
    }

    /// Claims up to that much work; returns the claims.
    pub(crate) async fn claim(
        &self,
        kind: WorkKind,
        limit: u32,
        now: OffsetDateTime,
    ) -> Vec<WorkClaim> {
        let claimed = self.claim_for(kind, FreeSlots::for_any(limit), now).await;
        claimed.into_iter().map(|work| work.claim).collect()
    }

    /// Work of ours that was queued and claimed then, alone in its queue; its record while it waited, and
    /// the claim.
    pub(crate) async fn claimed(
        &self,
        kind: WorkKind,
        now: OffsetDateTime,
    ) -> (WorkRecord, WorkClaim) {
        let queued = self.queued(kind, self.ours, now).await;
        let claim = self.claim(kind, 1, now).await.remove(0);
        assert_eq!(claim.work, queued.id());
        (queued, claim)
    }

    /// The record of work of ours as it is stored.
    pub(crate) async fn stored(&self, record: &WorkRecord) -> WorkRecord {
        match record {
            WorkRecord::Run(execution) => {
                let stored = self.executions.get(self.ours, execution.id).await;
                WorkRecord::Run(Box::new(stored.unwrap()))
            }
            WorkRecord::Training(version) => {
                let number = Some(version.number);
                let stored = self.models.get(self.ours, version.model, number).await;
                WorkRecord::Training(Box::new(stored.unwrap()))
            }
        }
    }

    /// The record of the work that is tried again after the loss of its worker: that of the same training, or of
    /// the execution that retries the run.
    pub(crate) async fn tried_again(&self, lost: &WorkRecord) -> WorkRecord {
        match self.stored(lost).await {
            WorkRecord::Run(failed) => {
                let retry = failed.retried_by().unwrap();
                let stored = self.executions.get(self.ours, retry).await;
                WorkRecord::Run(Box::new(stored.unwrap()))
            }
            training @ WorkRecord::Training(_) => training,
        }
    }

    /// Cancels work of ours; returns whether that succeeded.
    pub(crate) async fn cancel(&self, record: &WorkRecord, now: OffsetDateTime) -> bool {
        match record {
            WorkRecord::Run(execution) => {
                let cancelled = self.executions.cancel(self.ours, execution.id, now).await;
                cancelled.is_ok()
            }
            WorkRecord::Training(version) => {
                let cancelled = self.models.cancel(self.ours, version.model, now).await;
                cancelled.is_ok()
            }
        }
    }

    /// Ends work; returns its record if the claim held it.
    pub(crate) async fn finish(
        &self,
        claim: WorkClaim,
        end: &WorkEnd,
        now: OffsetDateTime,
    ) -> Option<WorkRecord> {
        self.work.finish(claim, end, now).await.unwrap()
    }

    /// Takes work from its holder at that time.
    pub(crate) async fn lose(&self, claim: WorkClaim, now: OffsetDateTime) -> ExpiredWork {
        lose(&*self.work, claim, now).await
    }
}

/// The version of a record of a training.
pub(crate) fn version_of(record: &WorkRecord) -> &ModelVersion {
    match record {
        WorkRecord::Training(version) => version,
        WorkRecord::Run(execution) => panic!("{execution:?} is no training"),
    }
}

/// The ids of claimed work with its organization.
pub(crate) fn ids(claims: &[WorkClaim]) -> Vec<(OrganizationId, WorkId)> {
    let ids = claims.iter().map(|claim| (claim.organization, claim.work));
    ids.collect()
}
