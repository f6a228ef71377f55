//! Recognizes a running training by its token.

use crate::{Error, Services};
use labdata_domain::{
    ids::{ModelVersionId, OrganizationId},
    models::{PlainReportToken, ReportTokenHash},
    people::credential::InvalidCredential,
};

/// Running training that has displayed its token.
#[derive(Clone, Copy, Debug)]
pub struct RunningTraining {
    /// The organization.
    pub organization: OrganizationId,
    /// The version that is trained.
    pub version: ModelVersionId,
    /// Hash of the token.
    pub(super) token: ReportTokenHash,
}

/// Finds the running training to which a token belongs.
///
/// # Errors
/// `Unauthenticated` for a token that is malformed, unknown, or of a training that was taken from
/// its worker.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn running_training(
    services: &Services,
    displayed: &str,
) -> Result<RunningTraining, Error> {
    let displayed = PlainReportToken::parse(displayed).ok_or_else(unknown_token)?;
    let (version, token) = (displayed.version(), displayed.hash());
    let holder = services.trainings.holder(version, token).await?;
    Ok(RunningTraining {
        organization: holder.ok_or_else(unknown_token)?,
        version,
        token,
    })
}

pub(super) fn unknown_token() -> Error {
    Error::refused(InvalidCredential::TrainingToken)
}
