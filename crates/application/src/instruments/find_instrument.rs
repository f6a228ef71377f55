//! Finds an instrument by its name.

use labdata_domain::{
    instruments::Instrument,
    names::RecordName,
    page::PageRequest,
    people::{actor::Actor, scope::Scope},
    refusal::Resource,
};

use crate::{Error, Services};

/// The organization's instrument of that name.
///
/// # Errors
/// `Forbidden` without the write scope, because uploads need the id and no other fact; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn find_instrument(
    services: &Services,
    actor: &Actor,
    name: &str,
) -> Result<Instrument, Error> {
    actor.require(Scope::Write)?;
    let all = PageRequest {
        limit: None,
        after: None,
    };
    let known = services.instruments.list(actor.organization, all).await?;
    let known = known.items;
    let name = RecordName::find(name, |name| known.iter().any(|it| it.name == name));
    let mut known = known.into_iter();
    known
        .find(|instrument| instrument.name == name)
        .ok_or_else(|| Error::not_found(Resource::Instrument))
}
