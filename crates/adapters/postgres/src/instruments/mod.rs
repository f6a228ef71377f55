//! Instruments.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{InstrumentId, OrganizationId},
    instruments::Instrument,
    page::{Cursor, Page, PageRequest},
};
use labdata_ports::{PortError, instruments::InstrumentRepository};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, port_error},
        paging::page_of,
        pool::Database,
    },
    schema::instrument,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = instrument)]
struct InstrumentRow {
    id: Uuid,
    name: String,
    description: Option<String>,
    instrument_type: Option<String>,
    created_at: OffsetDateTime,
}

impl From<InstrumentRow> for Instrument {
    fn from(row: InstrumentRow) -> Self {
        Self {
            id: InstrumentId::new(row.id),
            name: row.name,
            description: row.description,
            instrument_type: row.instrument_type,
            created_at: row.created_at,
        }
    }
}

/// Instruments in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgInstrumentRepository {
    database: Database,
}

impl PgInstrumentRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait]
impl InstrumentRepository for PgInstrumentRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        instrument: &Instrument,
    ) -> Result<(), PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        diesel::insert_into(instrument::table)
            .values((
                instrument::id.eq(instrument.id.as_uuid()),
                instrument::organization_id.eq(organization.as_uuid()),
                instrument::name.eq(&instrument.name),
                instrument::description.eq(&instrument.description),
                instrument::instrument_type.eq(&instrument.instrument_type),
                instrument::created_at.eq(instrument.created_at),
            ))
            .execute(&mut connection)
            .await
            .map_err(|error| {
                Fault::from(error)
                    .on_violation("instrument_name_key", || {
                        PortError::Conflict(instrument.name_taken())
                    })
                    .on_violation("instrument_organization_id_fkey", || {
                        PortError::NotFound("organization")
                    })
            })?;
        Ok(())
    }

    async fn list(
        &self,
        organization: OrganizationId,
        page: PageRequest,
    ) -> Result<Page<Instrument>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let query = instrument::table
            .filter(instrument::organization_id.eq(organization.as_uuid()))
            .select(InstrumentRow::as_select())
            .into_boxed();
        let rows: Vec<InstrumentRow> =
            page_of!(query, page, instrument::created_at, instrument::id)
                .load(&mut connection)
                .await
                .map_err(port_error)?;
        let instruments = rows.into_iter().map(Instrument::from).collect();
        Ok(Page::from_overfetched(
            instruments,
            page.limit,
            |instrument| Cursor {
                at: instrument.created_at,
                id: instrument.id.as_uuid(),
            },
        ))
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: InstrumentId,
    ) -> Result<Instrument, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let row = instrument::table
            .find(id.as_uuid())
            .filter(instrument::organization_id.eq(organization.as_uuid()))
            .select(InstrumentRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.map(Instrument::from)
            .ok_or(PortError::NotFound("instrument"))
    }
}
