//! Deleted files, tables and columns, which can be restored for a time.

pub mod list_trash;
pub mod purge_from_trash;
pub mod restore_from_trash;
pub mod sweep_trash;

use labdata_domain::{
    ids::TrashId,
    people::actor::Actor,
    trash::{Deletion, purge_at},
};

use crate::Services;

/// What the actor deletes now; `None` if it is deleted at once.
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
