//! Saved views.

use async_trait::async_trait;
use labdata_domain::{
    data::saved_view::{SavedView, SavedViewChange},
    ids::{OrganizationId, SavedViewId},
};

use crate::PortError;

/// Repository of saved views.
#[async_trait]
pub trait SavedViewRepository: Send + Sync {
    /// Stores a new view.
    ///
    /// # Errors
    /// [`PortError::Conflict`] when the organization has a view of that name; [`PortError::NotFound`] when the user who
    /// saves it is none of its users.
    async fn add(&self, view: &SavedView) -> Result<(), PortError>;

    /// One of the organization's views.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(
        &self,
        organization: OrganizationId,
        id: SavedViewId,
    ) -> Result<SavedView, PortError>;

    /// The organization's views, by their names.
    async fn list(&self, organization: OrganizationId) -> Result<Vec<SavedView>, PortError>;

    /// Changes a view, and returns it as stored then. Racing changes of different fields MUST all take effect.
    ///
    /// # Errors
    /// As [`Self::add`], and [`PortError::NotFound`] for an unknown view.
    async fn update(
        &self,
        organization: OrganizationId,
        id: SavedViewId,
        change: &SavedViewChange,
    ) -> Result<SavedView, PortError>;

    /// Removes a view.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn remove(&self, organization: OrganizationId, id: SavedViewId) -> Result<(), PortError>;
}
