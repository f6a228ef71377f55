//! Saved views in memory.

use async_trait::async_trait;
use labdata_domain::{
    data::saved_view::{SavedView, SavedViewChange},
    ids::{OrganizationId, SavedViewId},
    refusal::Resource,
};
use labdata_ports::{PortError, data::saved_views::SavedViewRepository};

use crate::memory::{State, fake};

fake!(
    /// Saved views in memory.
    pub struct InMemorySavedViewRepository;
);

impl State {
    fn saved_view(
        &self,
        organization: OrganizationId,
        id: SavedViewId,
    ) -> Result<SavedView, PortError> {
        let mut views = self.saved_views.iter();
        let found = views.find(|view| view.organization == organization && view.id == id);
        found
            .cloned()
            .ok_or(PortError::NotFound(Resource::SavedView))
    }

    fn check_view(&self, view: &SavedView) -> Result<(), PortError> {
        self.require_user(view.organization, view.created_by)?;
        let is_twin = |other: &SavedView| {
            other.organization == view.organization
                && other.id != view.id
                && other.name == view.name
        };
        if self.saved_views.iter().any(is_twin) {
            return Err(PortError::Conflict(view.name_taken()));
        }
        Ok(())
    }
}

#[async_trait]
impl SavedViewRepository for InMemorySavedViewRepository {
    async fn add(&self, view: &SavedView) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.check_view(view)?;
        state.saved_views.push(view.clone());
        Ok(())
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: SavedViewId,
    ) -> Result<SavedView, PortError> {
        self.memory.lock().saved_view(organization, id)
    }

    async fn list(&self, organization: OrganizationId) -> Result<Vec<SavedView>, PortError> {
        let state = self.memory.lock();
        let views = state.saved_views.iter();
        let own = views.filter(|view| view.organization == organization);
        let mut views: Vec<SavedView> = own.cloned().collect();
        views.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(views)
    }

    async fn update(
        &self,
        organization: OrganizationId,
        id: SavedViewId,
        change: &SavedViewChange,
    ) -> Result<SavedView, PortError> {
        let mut state = self.memory.lock();
        let view = state.saved_view(organization, id)?.changed(change.clone());
        state.check_view(&view)?;
        for stored in state.saved_views.iter_mut().filter(|view| view.id == id) {
            *stored = view.clone();
        }
        Ok(view)
    }

    async fn remove(&self, organization: OrganizationId, id: SavedViewId) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.saved_view(organization, id)?;
        state.saved_views.retain(|view| view.id != id);
        Ok(())
    }
}
