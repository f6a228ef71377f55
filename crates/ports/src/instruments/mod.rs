//! Instruments.

pub mod devices;
mod file_reader;
pub mod images;

use async_trait::async_trait;
use labdata_domain::{
    ids::{InstrumentId, OrganizationId},
    instruments::{Instrument, InstrumentChange},
    page::{Page, PageRequest},
};

use crate::PortError;

pub use file_reader::{FileReader, ReadingRequest};

/// Repository of instruments.
#[async_trait]
pub trait InstrumentRepository: Send + Sync {
    /// Stores a new instrument.
    ///
    /// # Errors
    /// [`PortError::Conflict`] when the organization has one of that name.
    async fn add(
        &self,
        organization: OrganizationId,
        instrument: &Instrument,
    ) -> Result<(), PortError>;

    /// The organization's instruments, newest first.
    async fn list(
        &self,
        organization: OrganizationId,
        page: PageRequest,
    ) -> Result<Page<Instrument>, PortError>;

    /// One of the organization's instruments.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(
        &self,
        organization: OrganizationId,
        id: InstrumentId,
    ) -> Result<Instrument, PortError>;

    /// Changes an instrument and returns it as it is stored then. Racing changes of different fields
    /// MUST all take effect.
    ///
    /// # Errors
    /// [`PortError::NotFound`]; [`PortError::Conflict`] when another instrument has the name.
    async fn update(
        &self,
        organization: OrganizationId,
        id: InstrumentId,
        change: &InstrumentChange,
    ) -> Result<Instrument, PortError>;

    /// Deletes an instrument to which no file and no trigger refers. False if one does: nothing is
    /// changed then.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn delete(
        &self,
        organization: OrganizationId,
        id: InstrumentId,
    ) -> Result<bool, PortError>;
}
