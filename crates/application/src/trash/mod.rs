//! Deleted files, tables and columns, which can be restored for a time.

pub mod list_trash;
pub mod purge_from_trash;
pub mod restore_from_trash;
pub mod sweep_trash;

use labdata_domain::{
    ids::TrashId,
    people::actor::Actor,
    refusal::Resource,
    trash::{Deletion, TrashEntry, purge_at},
};

use crate::{Error, Services};

/// An entry, unless the caller may not see it: then there is none.
async fn visible_entry(
    services: &Services,
    actor: &Actor,
    id: TrashId,
) -> Result<TrashEntry, Error> {
    let entry = services.trash.get(actor.organization, id).await?;
    if entry.is_visible_to(&actor.rights) {
        Ok(entry)
    } else {
        Err(Error::not_found(Resource::TrashEntry))
    }
}

/// The trash entry for a deletion by the actor; `None` if the trash is off and records are deleted at once.
pub(crate) fn deletion(services: &Services, actor: &Actor) -> Option<Deletion> {
    let at = services.clock.now();
    Some(Deletion {
        id: TrashId::new(services.ids.next_id()),
        user: actor.user,
        api_key: actor.api_key,
        at,
        purge_at: purge_at(at, services.trash_days)?,
    })
}
