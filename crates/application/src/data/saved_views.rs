//! Saved views.

use labdata_domain::{
    data::saved_view::{
        MAX_SAVED_VIEWS, SavedView, SavedViewChange, TooManySavedViews, check_view_address,
    },
    ids::SavedViewId,
    names::Named,
    page::{Cursor, Page, PageRequest},
    people::{actor::Actor, scope::Scope},
    refusal::Resource,
    trash::TrashKind,
};

use crate::{
    Error, Services, catalog::visible::visible_catalog, maintenance::disk_reserve::require_reserve,
};

/// The view to save.
#[derive(Clone, Debug)]
pub struct SaveView {
    /// Name, unique within the organization.
    pub name: String,
    /// Address within the console.
    pub address: String,
    /// True if Home lists it.
    pub is_pinned: bool,
}

/// The organization's views, newest first, without those that mention a table that is hidden from the caller.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_saved_views(
    services: &Services,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<SavedView>, Error> {
    actor.require(Scope::Read)?;
    let hidden = hidden_tables(services, actor).await?;
    let mut views = services.saved_views.list(actor.organization).await?;
    views.retain(|view| is_visible(view, &hidden));
    Ok(Page::of_all(views, page, |view| Cursor {
        at: view.created_at,
        id: view.id.as_uuid(),
    }))
}

/// Saves a view for everyone of the organization.
///
/// # Errors
/// `Forbidden` without the write scope; `Invalid` for a name or an address that cannot be, or when the organization has
/// [`MAX_SAVED_VIEWS`]; `Conflict` when it has a view of that name.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn save_view(
    services: &Services,
    actor: &Actor,
    command: SaveView,
) -> Result<SavedView, Error> {
    actor.require(Scope::Write)?;
    require_reserve(services)?;
    let name = Named::SavedView
        .parse(&command.name)
        .map_err(Error::refused)?;
    check_view_address(&command.address).map_err(Error::refused)?;
    // Racing requests may exceed the limit by a few, which is harmless.
    let existing = services.saved_views.list(actor.organization).await?;
    if existing.len() >= MAX_SAVED_VIEWS {
        return Err(Error::refused(TooManySavedViews));
    }
    let view = SavedView {
        id: SavedViewId::new(services.ids.next_id()),
        organization: actor.organization,
        name: name.into(),
        address: command.address,
        is_pinned: command.is_pinned,
        created_by: actor.user,
        created_at: services.clock.now(),
    };
    services.saved_views.add(&view).await?;
    Ok(view)
}

/// Changes a view.
///
/// # Errors
/// As [`save_view`]; `Forbidden` for a view that somebody else saved, unless the caller has the admin scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn update_saved_view(
    services: &Services,
    actor: &Actor,
    id: SavedViewId,
    mut change: SavedViewChange,
) -> Result<SavedView, Error> {
    actor.require(Scope::Write)?;
    if let Some(name) = &mut change.name {
        *name = Named::SavedView.parse(name).map_err(Error::refused)?.into();
    }
    if let Some(address) = &change.address {
        check_view_address(address).map_err(Error::refused)?;
    }
    require_changeable(services, actor, id).await?;
    let updated = services.saved_views.update(actor.organization, id, &change);
    Ok(updated.await?)
}

/// Deletes a view.
///
/// # Errors
/// `Forbidden` without the write scope, or for a view that somebody else saved, unless the caller has the admin scope;
/// `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn delete_saved_view(
    services: &Services,
    actor: &Actor,
    id: SavedViewId,
) -> Result<(), Error> {
    actor.require(Scope::Write)?;
    require_changeable(services, actor, id).await?;
    Ok(services.saved_views.remove(actor.organization, id).await?)
}

/// Refuses a view that the caller may not see, and then one that the caller may not change.
async fn require_changeable(
    services: &Services,
    actor: &Actor,
    id: SavedViewId,
) -> Result<(), Error> {
    let view = services.saved_views.get(actor.organization, id).await?;
    let hidden = hidden_tables(services, actor).await?;
    if !is_visible(&view, &hidden) {
        return Err(Error::not_found(Resource::SavedView));
    }
    view.require_owner(actor).map_err(Error::refused)
}

/// Names of the tables that are hidden from the caller, those in the trash included.
async fn hidden_tables(services: &Services, actor: &Actor) -> Result<Vec<String>, Error> {
    let catalog = visible_catalog(services, actor).await?;
    let hidden = catalog.hidden().iter().map(|table| table.name.clone());
    let mut hidden: Vec<String> = hidden.collect();
    if !actor.rights.see_everything() {
        let all = PageRequest {
            limit: None,
            after: None,
        };
        let trash = services.trash.list(actor.organization, all).await?.items;
        let tables = trash
            .into_iter()
            .filter(|entry| entry.kind == TrashKind::Table && !entry.is_visible_to(&actor.rights));
        hidden.extend(tables.map(|entry| entry.name));
    }
    Ok(hidden)
}

fn is_visible(view: &SavedView, hidden: &[String]) -> bool {
    !hidden.iter().any(|table| view.mentions(table))
}
