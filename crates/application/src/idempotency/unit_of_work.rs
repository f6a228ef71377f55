//! Transaction that a caller of use cases holds.

use std::{fmt, sync::Arc};

use labdata_domain::{idempotency::StoredResponse, ids::OrganizationId};
use labdata_ports::{PortError, idempotency};

use crate::{Error, Services};

/// The effect of a request and its stored response, as one transaction. Use cases take part in it if
/// they are called with [`UnitOfWork::services`], and only then.
///
/// It holds a connection to the database, so slow work is done before it begins. Objects in storage are not
/// part of it.
pub struct UnitOfWork {
    services: Arc<Services>,
    transaction: Box<dyn idempotency::UnitOfWork>,
}

impl UnitOfWork {
    pub(super) fn new(services: &Services, transaction: Box<dyn idempotency::UnitOfWork>) -> Self {
        let mut services = services.clone();
        // Use cases stay the same, but all their queries go through this transaction.
        services.repositories = transaction.repositories();
        services.shown_tables = services.shown_tables.in_unit();
        Self {
            services: Arc::new(services),
            transaction,
        }
    }

    /// Begins one of the organization; within another, it is a part of that.
    ///
    /// # Errors
    /// [`PortError`].
    pub(crate) async fn begin(
        services: &Services,
        organization: OrganizationId,
    ) -> Result<Self, PortError> {
        let transaction = services.units.begin(organization).await?;
        Ok(Self::new(services, transaction))
    }

    /// The services, whose repositories are part of this transaction.
    #[must_use]
    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// Ends one that bears no idempotency key: stores its changes if the use case succeeded, or undoes them.
    ///
    /// # Errors
    /// That of the use case; [`Error`] of the ports, and nothing was stored.
    pub(crate) async fn conclude<T>(self, outcome: Result<T, Error>) -> Result<T, Error> {
        match &outcome {
            Ok(_) => self.transaction.commit(None).await?,
            Err(_) => self.transaction.roll_back().await,
        }
        outcome
    }

    /// Ends it: stores the response of a request that succeeded together with its changes, or undoes the
    /// changes of one that failed, and of a dry run.
    ///
    /// # Errors
    /// [`ResponseTooLarge`](labdata_domain::idempotency::ResponseTooLarge), and those of the port; nothing
    /// was stored.
    pub async fn end(&self, response: Option<StoredResponse>) -> Result<(), Error> {
        let Some(response) = response else {
            self.transaction.roll_back().await;
            return Ok(());
        };
        if let Err(too_large) = StoredResponse::check_size(response.body.len()) {
            self.transaction.roll_back().await;
            return Err(Error::refused(too_large));
        }
        let response = StoredResponse {
            tables: self.services.shown_tables.all(),
            ..response
        };
        // Committed with the changes, so that a retry finds both or neither.
        Ok(self.transaction.commit(Some(&response)).await?)
    }
}

impl fmt::Debug for UnitOfWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitOfWork").finish_non_exhaustive()
    }
}
