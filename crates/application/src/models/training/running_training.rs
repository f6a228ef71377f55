//! Recognizes a running training by its token.

use labdata_domain::{
    models::{PlainReportToken, ReportTokenHash},
    people::credential::InvalidCredential,
};
use labdata_ports::models::TrainingClaim;

use crate::{Error, Ports};

/// Running training that has displayed its token.
#[derive(Clone, Copy, Debug)]
pub struct RunningTraining {
    /// Claim under which it runs.
    pub claim: TrainingClaim,
    /// Hash of the token.
    pub(super) token: ReportTokenHash,
}

/// Finds the running training to which a token belongs.
///
/// # Errors
/// `Unauthenticated` for a token that is malformed, unknown, or of a training that was taken from
/// its worker.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn running_training(ports: &Ports, displayed: &str) -> Result<RunningTraining, Error> {
    let displayed = PlainReportToken::parse(displayed).ok_or_else(unknown_token)?;
    let token = displayed.hash();
    let claim = ports.trainings.holder(displayed.version(), token).await?;
    let claim = claim.ok_or_else(unknown_token)?;
    Ok(RunningTraining { claim, token })
}

pub(super) fn unknown_token() -> Error {
    Error::refused(InvalidCredential::TrainingToken)
}
