//! Finds the version of a model that predicts.

use std::sync::Arc;

use labdata_domain::{
    ids::{ModelId, OrganizationId},
    models::{
        ModelSignature, ModelVersion, NoActiveVersion, PredictionInput, Predictions,
        SegmentationOptions,
    },
    names::RecordName,
    refusal::Resource,
};
use labdata_ports::models::{PredictionRequest, ServedModel};
use time::Duration;

use super::{image_urls::image_urls, prediction_error::PredictionError};
use crate::{Error, Services, models::gateway_urls::sign_object};

/// Name of an artifact, for people who follow its URL.
const ARTIFACT_NAME: &str = "artifact.tar.zst";

/// Lifetime of the URL of an artifact. Packages may be installed before it is fetched.
const ARTIFACT_URL_LIFETIME: Duration = Duration::hours(1);

/// Model, as a client names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelReference {
    /// By its id.
    Id(ModelId),
    /// By its name, among those that are not archived.
    Name(String),
}

/// Version that predicts.
pub(super) struct ActiveModel {
    /// Its record.
    pub(super) version: ModelVersion,
    /// The version, for the predictor.
    pub(super) served: ServedModel,
}

/// The model of that name: as it is given, as an earlier version stored it, or as names are stored.
async fn find_named(
    services: &Services,
    organization: OrganizationId,
    name: &str,
) -> Result<Option<ModelVersion>, Error> {
    if let Some(found) = services.models.find_by_name(organization, name).await? {
        return Ok(Some(found));
    }
    match RecordName::parse(name) {
        Some(other) if other.as_str() != name => Ok(services
            .models
            .find_by_name(organization, other.as_str())
            .await?),
        _ => Ok(None),
    }
}

/// Finds the active version of a model. An archived model does not predict, and is as one that does not exist.
pub(super) async fn active_model(
    services: &Services,
    organization: OrganizationId,
    reference: &ModelReference,
) -> Result<ActiveModel, Error> {
    let model = match reference {
        ModelReference::Id(id) => *id,
        ModelReference::Name(name) => {
            find_named(services, organization, name)
                .await?
                .ok_or_else(|| Error::not_found(Resource::Model))?
                .model
        }
    };
    let Some(version) = services.models.active(organization, model).await? else {
        // 404 for an unknown model; a known one is named in the message.
        let newest = services.models.get(organization, model, None).await?;
        return Err(if newest.archived {
            Error::not_found(Resource::Model)
        } else {
            Error::refused(NoActiveVersion(newest.name))
        });
    };
    // As by its name, which an archived model does not have.
    if version.archived {
        return Err(Error::not_found(Resource::Model));
    }
    ActiveModel::new(services, organization, version).await
}

/// Finds the version that predicts now: the active one, or the one before as long as the active one is not
/// prepared on this server.
pub(super) async fn serving_model(
    services: &Services,
    organization: OrganizationId,
    reference: &ModelReference,
) -> Result<ActiveModel, Error> {
    let active = active_model(services, organization, reference).await?;
    if services.predictor.is_ready(&active.served) {
        return Ok(active);
    }
    let now = services.clock.now();
    let previous = services
        .served_models
        .stand_in(organization, &active.version, now);
    let Some(previous) = previous else {
        return Ok(active);
    };
    // Loading takes a while; until it is done, the previous version predicts.
    services.predictor.prepare(&active.served);
    let previous = ActiveModel::new(services, organization, previous).await?;
    Ok(if services.predictor.is_ready(&previous.served) {
        previous
    } else {
        active
    })
}

impl ActiveModel {
    async fn new(
        services: &Services,
        organization: OrganizationId,
        version: ModelVersion,
    ) -> Result<Self, Error> {
        let signature = signature(services, organization, &version).await?;
        let artifact = version.artifact.ok_or_else(|| without_result(&version))?;
        let expires_at = services.clock.now() + ARTIFACT_URL_LIFETIME;
        let object = artifact.object;
        let artifact_url =
            sign_object(services, organization, object, ARTIFACT_NAME, expires_at).await?;
        let served = ServedModel {
            organization,
            version: version.version,
            task: version.plan.task,
            signature,
            artifact,
            artifact_url,
        };
        Ok(Self { version, served })
    }

    /// Predicts checked rows, a segmentation with these thresholds.
    pub(super) async fn predict(
        &self,
        services: &Services,
        input: PredictionInput,
        segmentation: Option<SegmentationOptions>,
    ) -> Result<Predictions, PredictionError> {
        let organization = self.served.organization;
        let image_urls = image_urls(services, organization, &input).await?;
        let request = PredictionRequest {
            input,
            image_urls,
            segmentation,
        };
        let predictions = services.predictor.predict(&self.served, request).await?;
        // After a success only: a version that cannot predict must not stand in for another.
        services
            .served_models
            .predicted(organization, &self.version);
        Ok(predictions)
    }
}

/// Returns what a version reads and predicts. It never changes, so it is read once.
async fn signature(
    services: &Services,
    organization: OrganizationId,
    version: &ModelVersion,
) -> Result<Arc<ModelSignature>, Error> {
    // The signature of a version never changes, so the cache needs no expiry.
    let known = services
        .served_models
        .signature(organization, version.version);
    if let Some(known) = known {
        return Ok(known);
    }
    let result = services
        .models
        .result(organization, version.model, version.number);
    let result = result.await?.ok_or_else(|| without_result(version))?;
    let signature = Arc::new(ModelSignature::from(result));
    services
        .served_models
        .remember(organization, version.version, &signature);
    Ok(signature)
}

fn without_result(version: &ModelVersion) -> Error {
    Error::Internal(format!(
        "version {} is active without a result",
        version.version
    ))
}
