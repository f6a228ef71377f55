//! Finds the version of a model that predicts.

use labdata_domain::{
    ids::{ModelId, OrganizationId},
    models::{ModelSignature, ModelVersion, NoActiveVersion, PredictionInput, Predictions},
};
use labdata_ports::models::{PredictionRequest, ServedModel};
use time::Duration;

use super::{image_urls::image_urls, prediction_error::PredictionError};
use crate::{Error, Ports, models::gateway_urls::sign_object};

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

/// Finds the active version of a model.
pub(super) async fn active_model(
    ports: &Ports,
    organization: OrganizationId,
    reference: &ModelReference,
) -> Result<ActiveModel, Error> {
    let model = match reference {
        ModelReference::Id(id) => *id,
        ModelReference::Name(name) => {
            let found = ports.models.find_by_name(organization, name).await?;
            found.ok_or(Error::NotFound("ML model"))?.model
        }
    };
    let Some(version) = ports.models.active(organization, model).await? else {
        let newest = ports.models.get(organization, model, None).await?;
        return Err(Error::Invalid(NoActiveVersion(newest.name).to_string()));
    };
    let result = ports.models.result(organization, model, version.number);
    let (Some(result), Some(artifact)) = (result.await?, version.artifact) else {
        let text = format!("version {} is active without a result", version.version);
        return Err(Error::Internal(text));
    };
    let expires_at = ports.clock.now() + ARTIFACT_URL_LIFETIME;
    let object = artifact.object;
    let artifact_url = sign_object(ports, organization, object, ARTIFACT_NAME, expires_at).await?;
    let served = ServedModel {
        organization,
        version: version.version,
        task: version.plan.task,
        signature: ModelSignature::from(result),
        artifact,
        artifact_url,
    };
    Ok(ActiveModel { version, served })
}

impl ActiveModel {
    /// Predicts checked rows.
    pub(super) async fn predict(
        &self,
        ports: &Ports,
        input: PredictionInput,
    ) -> Result<Predictions, PredictionError> {
        let image_urls = image_urls(ports, self.served.organization, &input).await?;
        let request = PredictionRequest { input, image_urls };
        Ok(ports.predictor.predict(&self.served, request).await?)
    }
}
