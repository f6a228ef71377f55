//! Exchanges the token of a training that others see for one that only the training knows.

use labdata_domain::models::PlainReportToken;
use time::Duration;

use super::{
    manifest::Secrets,
    running_training::unknown_token,
    signed_objects::{sign_artifact, sign_dataset},
};
use crate::{Error, Services};

/// Lifetime of the dataset's URL, which is read first.
const DATASET_URL_LIFETIME: Duration = Duration::hours(2);

/// Lifetime of the artifact's URL, longer than any training. An upload is refused once the attempt has
/// ended.
const ARTIFACT_URL_LIFETIME: Duration = Duration::days(30);

/// Returns the secrets of a training as JSON that the trainer adds to its manifest: a fresh token, and signed
/// URLs of its dataset and of its artifact. The token displayed is unknown from now on.
///
/// # Errors
/// `Unauthenticated` for a token that is malformed, unknown or already exchanged, or of a training
/// that was taken from its worker.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn exchange_token(services: &Services, presented: &str) -> Result<String, Error> {
    let presented = PlainReportToken::parse(presented).ok_or_else(unknown_token)?;
    let version = presented.version();
    let mut secret = [0; 32];
    services.ids.fill_random(&mut secret);
    let fresh = PlainReportToken::from_random(version, secret);
    // Works once: if someone else exchanges the token first, the training fails visibly.
    let exchanged = services
        .trainings
        .exchange_token(version, presented.hash(), fresh.hash());
    let training = exchanged.await?.ok_or_else(unknown_token)?;
    let organization = training.organization;
    let dataset = services
        .datasets
        .get(organization, training.dataset)
        .await?;
    let now = services.clock.now();
    let artifact = sign_artifact(
        services,
        organization,
        training.artifact,
        now + ARTIFACT_URL_LIFETIME,
    );
    let artifact = artifact.await?;
    let dataset = sign_dataset(services, organization, &dataset, now + DATASET_URL_LIFETIME);
    let secrets = Secrets {
        token: fresh.reveal().to_owned(),
        dataset: dataset.await?,
        artifact,
    };
    Ok(secrets.into_json().to_string())
}
