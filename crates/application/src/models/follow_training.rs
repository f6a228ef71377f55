//! Follows the training of a version.

use labdata_domain::{
    ids::{ModelId, OrganizationId},
    models::ModelVersion,
    people::{actor::Actor, scope::Scope},
    work::WorkId,
};

use crate::{Error, Services, slots::Slot, subscription::Subscription};

/// Follower of one version.
#[derive(Debug)]
pub struct TrainingFollower {
    organization: OrganizationId,
    model: ModelId,
    number: u32,
    /// Counts the follower.
    _slot: Slot,
}

/// Begins to follow the version of that number, or the newest one. The subscription wakes the follower at
/// every change, from whichever server it comes.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Unavailable` if the organization has too many
/// followers.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn follow_training(
    services: &Services,
    actor: &Actor,
    id: ModelId,
    number: Option<u32>,
) -> Result<(TrainingFollower, Subscription), Error> {
    actor.require(Scope::Read)?;
    let slot = services.slots.follow(actor)?;
    let version = services.models.get(actor.organization, id, number).await?;
    let follower = TrainingFollower {
        organization: actor.organization,
        model: id,
        number: version.number,
        _slot: slot,
    };
    let news = services.work.follow(WorkId::Training(version.version));
    Ok((follower, Subscription::new(news)))
}

impl TrainingFollower {
    /// Reads the version as it is now.
    ///
    /// # Errors
    /// Errors of the port.
    pub async fn read(&self, services: &Services) -> Result<ModelVersion, Error> {
        let number = Some(self.number);
        Ok(services
            .models
            .get(self.organization, self.model, number)
            .await?)
    }
}
