//! Admits messages of assistants elsewhere.

use labdata_domain::people::{actor::Actor, scope::Scope};

use crate::{
    Error, Services,
    slots::{Slot, Work},
};

/// Admits a message of an assistant. The slot counts it until it is answered.
///
/// # Errors
/// `Forbidden` without the read scope; `Unavailable` if others take 10 s.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn admit_assistant(services: &Services, actor: &Actor) -> Result<Slot, Error> {
    actor.require(Scope::Read)?;
    services.slots.enter(Work::McpRequest, actor).await
}
