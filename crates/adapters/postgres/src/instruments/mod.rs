//! Instruments.

pub(crate) mod devices;
pub(crate) mod images;

use std::collections::HashSet;

use async_trait::async_trait;
use diesel::{
    prelude::*,
    result::{DatabaseErrorKind, Error as DieselError},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{InstrumentId, OrganizationId},
    instruments::{Instrument, InstrumentChange},
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
};
use labdata_ports::{PortError, instruments::InstrumentRepository};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, port_error, transacted},
        paging::page_of,
        pool::{Connection, Database},
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
    reader: Option<String>,
    timezone: Option<String>,
    last_reader: Option<String>,
    created_at: OffsetDateTime,
}

impl From<InstrumentRow> for Instrument {
    fn from(row: InstrumentRow) -> Self {
        Self {
            id: InstrumentId::new(row.id),
            name: row.name,
            description: row.description,
            instrument_type: row.instrument_type,
            reader: row.reader,
            timezone: row.timezone,
            last_reader: row.last_reader,
            created_at: row.created_at,
        }
    }
}

/// Maps the violation of an instrument's constraint.
fn refusal(error: diesel::result::Error, instrument: &Instrument) -> Fault {
    Fault::from(error)
        .on_violation("instrument_name_key", || {
            PortError::Conflict(instrument.name_taken())
        })
        .on_violation("instrument_organization_id_fkey", || {
            PortError::NotFound(Resource::Organization)
        })
}

async fn update(
    connection: &mut Connection,
    organization: OrganizationId,
    id: InstrumentId,
    change: &InstrumentChange,
) -> Result<Instrument, Fault> {
    let stored: Option<InstrumentRow> = instrument::table
        .find(id.as_uuid())
        .filter(instrument::organization_id.eq(organization.as_uuid()))
        .select(InstrumentRow::as_select())
        // Two changes of different fields must both take effect.
        .for_update()
        .first(connection)
        .await
        .optional()?;
    let stored = stored.ok_or(PortError::NotFound(Resource::Instrument))?;
    let changed = change.apply(stored.into());
    diesel::update(instrument::table.find(id.as_uuid()))
        .set((
            instrument::name.eq(&changed.name),
            instrument::description.eq(&changed.description),
            instrument::instrument_type.eq(&changed.instrument_type),
            instrument::reader.eq(&changed.reader),
            instrument::timezone.eq(&changed.timezone),
            instrument::last_reader.eq(&changed.last_reader),
        ))
        .execute(connection)
        .await
        .map_err(|error| refusal(error, &changed))?;
    Ok(changed)
}

/// Those of the instruments that have a reader of files.
pub(crate) async fn with_reader(
    connection: &mut Connection,
    ids: Vec<Uuid>,
) -> Result<HashSet<Uuid>, DieselError> {
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let found: Vec<Uuid> = instrument::table
        .filter(instrument::id.eq_any(ids))
        .filter(instrument::reader.is_not_null())
        .select(instrument::id)
        .load(connection)
        .await?;
    Ok(found.into_iter().collect())
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
                instrument::reader.eq(&instrument.reader),
                instrument::timezone.eq(&instrument.timezone),
                instrument::last_reader.eq(&instrument.last_reader),
                instrument::created_at.eq(instrument.created_at),
            ))
            .execute(&mut connection)
            .await
            .map_err(|error| refusal(error, instrument).of_commit())?;
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
            .ok_or(PortError::NotFound(Resource::Instrument))
    }

    async fn update(
        &self,
        organization: OrganizationId,
        id: InstrumentId,
        change: &InstrumentChange,
    ) -> Result<Instrument, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => update(connection, organization, id, change)
        )?)
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        id: InstrumentId,
    ) -> Result<bool, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let outcome = diesel::delete(instrument::table.find(id.as_uuid()))
            .filter(instrument::organization_id.eq(organization.as_uuid()))
            .execute(&mut connection)
            .await;
        match outcome {
            Ok(0) => Err(PortError::NotFound(Resource::Instrument)),
            Ok(_) => Ok(true),
            // The constraint decides, not an earlier look: a file may be added in between.
            Err(DieselError::DatabaseError(DatabaseErrorKind::ForeignKeyViolation, _)) => Ok(false),
            Err(error) => Err(Fault::from(error).of_commit().into()),
        }
    }
}
