//! Devices of instruments.

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    events::LoggedEventKind,
    ids::{InstrumentId, OrganizationId},
    instruments::{Device, DeviceStatus, Heartbeat, Period, ReportedStatus, WatchedDevice},
    refusal::Resource,
};
use labdata_ports::{PortError, instruments::devices::DeviceRepository};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, port_error, transacted},
        pool::{Connection, Database},
    },
    events::record::record,
    schema::{device, device_period, instrument},
};

/// Devices of instruments in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgDeviceRepository {
    database: Database,
}

impl PgDeviceRepository {
    /// The devices of that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = device)]
struct DeviceRow {
    instrument_id: Uuid,
    status: String,
    first_seen: OffsetDateTime,
    last_seen: OffsetDateTime,
    app_version: Option<String>,
    is_watching: Option<bool>,
    since: OffsetDateTime,
    queued_files: Option<i64>,
    detail: Option<Value>,
    beats: i64,
    announced_status: String,
    outage_noticed: bool,
}

impl TryFrom<DeviceRow> for Device {
    type Error = PortError;

    fn try_from(row: DeviceRow) -> Result<Self, PortError> {
        let corrupt = |column| corrupt("device", column, row.instrument_id);
        Ok(Self {
            period: Period {
                status: ReportedStatus::from_name(&row.status).ok_or_else(|| corrupt("status"))?,
                first_seen: row.first_seen,
                last_seen: row.last_seen,
                app_version: row.app_version,
                is_watching: row.is_watching,
            },
            since: row.since,
            queued_files: row.queued_files.and_then(|count| u32::try_from(count).ok()),
            detail: row.detail,
            beats: u64::try_from(row.beats).map_err(|_| corrupt("beats"))?,
            announced: DeviceStatus::from_name(&row.announced_status)
                .ok_or_else(|| corrupt("announced_status"))?,
            is_outage_noticed: row.outage_noticed,
        })
    }
}

#[derive(QueryableByName)]
#[diesel(table_name = device_period)]
struct PeriodRow {
    instrument_id: Uuid,
    first_seen: OffsetDateTime,
    last_seen: OffsetDateTime,
    status: String,
    app_version: Option<String>,
    is_watching: Option<bool>,
}

impl TryFrom<PeriodRow> for Period {
    type Error = PortError;

    fn try_from(row: PeriodRow) -> Result<Self, PortError> {
        let status = ReportedStatus::from_name(&row.status);
        Ok(Self {
            status: status.ok_or_else(|| corrupt("device_period", "status", row.instrument_id))?,
            first_seen: row.first_seen,
            last_seen: row.last_seen,
            app_version: row.app_version,
            is_watching: row.is_watching,
        })
    }
}

#[derive(QueryableByName)]
struct WatchedRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    instrument_id: Uuid,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = BigInt)]
    beats: i64,
    #[diesel(sql_type = Timestamptz)]
    last_seen: OffsetDateTime,
    #[diesel(sql_type = Nullable<BigInt>)]
    queued_files: Option<i64>,
    #[diesel(sql_type = Text)]
    announced_status: String,
    #[diesel(sql_type = Bool)]
    outage_noticed: bool,
}

impl TryFrom<WatchedRow> for WatchedDevice {
    type Error = PortError;

    fn try_from(row: WatchedRow) -> Result<Self, PortError> {
        let corrupt = |column| corrupt("device", column, row.instrument_id);
        Ok(Self {
            organization: OrganizationId::new(row.organization_id),
            instrument: InstrumentId::new(row.instrument_id),
            name: row.name,
            beats: u64::try_from(row.beats).map_err(|_| corrupt("beats"))?,
            last_seen: row.last_seen,
            queued_files: row.queued_files.and_then(|count| u32::try_from(count).ok()),
            announced: DeviceStatus::from_name(&row.announced_status)
                .ok_or_else(|| corrupt("announced_status"))?,
            is_outage_noticed: row.outage_noticed,
        })
    }
}

/// A count of heartbeats as the database retains it.
fn number(beats: u64) -> Result<i64, PortError> {
    i64::try_from(beats).map_err(|error| PortError::Internal(error.to_string()))
}

async fn beat(
    connection: &mut Connection,
    organization: OrganizationId,
    id: InstrumentId,
    heartbeat: Heartbeat,
    at: OffsetDateTime,
) -> Result<Device, Fault> {
    // The instrument's row, because a device that never reported has none to lock. Uploads refer to it under a
    // weaker lock and are not held up.
    let instrument: Option<Uuid> = instrument::table
        .find(id.as_uuid())
        .filter(instrument::organization_id.eq(organization.as_uuid()))
        .select(instrument::id)
        .for_no_key_update()
        .first(connection)
        .await
        .optional()?;
    instrument.ok_or(PortError::NotFound(Resource::Instrument))?;
    let before: Option<DeviceRow> = device::table
        .find((organization.as_uuid(), id.as_uuid()))
        .select(DeviceRow::as_select())
        // A server that finds the device silent locks this row only.
        .for_update()
        .first(connection)
        .await
        .optional()?;
    let before = before.map(Device::try_from).transpose()?;
    let beat = Device::beat(before, heartbeat, at);
    if let Some(ended) = &beat.ended {
        end(connection, organization, id, ended).await?;
    }
    store(connection, organization, id, &beat.device).await?;
    if let Some(status) = beat.event {
        let event = LoggedEventKind::of_device(id, status);
        record(connection, organization, at, &[event]).await?;
    }
    Ok(beat.device)
}

async fn end(
    connection: &mut Connection,
    organization: OrganizationId,
    id: InstrumentId,
    ended: &Period,
) -> Result<(), Fault> {
    diesel::insert_into(device_period::table)
        .values((
            device_period::organization_id.eq(organization.as_uuid()),
            device_period::instrument_id.eq(id.as_uuid()),
            device_period::first_seen.eq(ended.first_seen),
            device_period::last_seen.eq(ended.last_seen),
            device_period::status.eq(ended.status.as_str()),
            device_period::app_version.eq(&ended.app_version),
            device_period::is_watching.eq(ended.is_watching),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

async fn store(
    connection: &mut Connection,
    organization: OrganizationId,
    id: InstrumentId,
    it: &Device,
) -> Result<(), Fault> {
    // Both halves of the upsert take the same tuple, so that a new column cannot be forgotten in one of them.
    let columns = (
        device::status.eq(it.period.status.as_str()),
        device::first_seen.eq(it.period.first_seen),
        device::last_seen.eq(it.period.last_seen),
        device::app_version.eq(&it.period.app_version),
        device::is_watching.eq(it.period.is_watching),
        device::since.eq(it.since),
        device::queued_files.eq(it.queued_files.map(i64::from)),
        device::detail.eq(&it.detail),
        device::beats.eq(number(it.beats)?),
        device::announced_status.eq(it.announced.as_str()),
        device::outage_noticed.eq(it.is_outage_noticed),
    );
    diesel::insert_into(device::table)
        .values((
            device::organization_id.eq(organization.as_uuid()),
            device::instrument_id.eq(id.as_uuid()),
            columns,
        ))
        .on_conflict((device::organization_id, device::instrument_id))
        .do_update()
        .set(columns)
        .execute(connection)
        .await?;
    Ok(())
}

async fn go_offline(
    connection: &mut Connection,
    organization: OrganizationId,
    id: InstrumentId,
    beats: u64,
    at: OffsetDateTime,
) -> Result<bool, Fault> {
    let offline = DeviceStatus::Offline;
    let changed = diesel::update(device::table.find((organization.as_uuid(), id.as_uuid())))
        // Of several servers one finds the row; a heartbeat in between is a sign of life.
        .filter(device::beats.eq(number(beats)?))
        .filter(device::announced_status.ne(offline.as_str()))
        .set(device::announced_status.eq(offline.as_str()))
        .execute(connection)
        .await?;
    if changed > 0 {
        let event = LoggedEventKind::of_device(id, offline);
        record(connection, organization, at, &[event]).await?;
    }
    Ok(changed > 0)
}

#[async_trait]
impl DeviceRepository for PgDeviceRepository {
    async fn beat(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
        heartbeat: Heartbeat,
        at: OffsetDateTime,
    ) -> Result<Device, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => beat(connection, organization, instrument, heartbeat.clone(), at)
        )?)
    }

    async fn find(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
    ) -> Result<Option<Device>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let row: Option<DeviceRow> = device::table
            .find((organization.as_uuid(), instrument.as_uuid()))
            .select(DeviceRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.map(Device::try_from).transpose()
    }

    async fn periods(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
        until: OffsetDateTime,
        limit: usize,
    ) -> Result<Vec<Period>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // One statement: a heartbeat between two would show a period twice, or never.
        let rows: Vec<PeriodRow> = diesel::sql_query(
            "WITH period AS NOT MATERIALIZED ( \
                 SELECT instrument_id, first_seen, last_seen, status, app_version, is_watching \
                 FROM labdata.device_period WHERE organization_id = $1 AND instrument_id = $2 \
                 UNION ALL \
                 SELECT instrument_id, first_seen, last_seen, status, app_version, is_watching \
                 FROM labdata.device WHERE organization_id = $1 AND instrument_id = $2 \
             ) \
             (SELECT * FROM period WHERE first_seen > $3 ORDER BY first_seen LIMIT 1) \
             UNION ALL \
             (SELECT * FROM period WHERE first_seen <= $3 ORDER BY first_seen DESC LIMIT $4) \
             ORDER BY first_seen DESC",
        )
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<SqlUuid, _>(instrument.as_uuid())
        .bind::<Timestamptz, _>(until)
        .bind::<BigInt, _>(i64::try_from(limit).unwrap_or(i64::MAX))
        .load(&mut connection)
        .await
        .map_err(port_error)?;
        rows.into_iter().rev().map(Period::try_from).collect()
    }

    async fn watched(&self) -> Result<Vec<WatchedDevice>, PortError> {
        let mut connection = self.database.connection().await?;
        let rows: Vec<WatchedRow> = diesel::sql_query(
            // Without those about which nothing is left to announce: the result stays small however many devices were retired.
            "SELECT d.organization_id, d.instrument_id, i.name, d.beats, d.last_seen, d.queued_files, \
                 d.announced_status, d.outage_noticed \
             FROM labdata.device d \
             JOIN labdata.instrument i ON i.organization_id = d.organization_id AND i.id = d.instrument_id \
             WHERE NOT (d.announced_status = 'offline' AND d.outage_noticed)",
        )
        .load(&mut connection)
        .await
        .map_err(port_error)?;
        rows.into_iter().map(WatchedDevice::try_from).collect()
    }

    async fn go_offline(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
        beats: u64,
        at: OffsetDateTime,
    ) -> Result<bool, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => go_offline(connection, organization, instrument, beats, at)
        )?)
    }

    async fn outage_noticed(
        &self,
        organization: OrganizationId,
        instrument: InstrumentId,
        beats: u64,
    ) -> Result<(), PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        diesel::update(device::table.find((organization.as_uuid(), instrument.as_uuid())))
            // A heartbeat since then has ended the outage: the next one must be noticed again.
            .filter(device::beats.eq(number(beats)?))
            .set(device::outage_noticed.eq(true))
            .execute(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(())
    }

    async fn delete_before(&self, before: OffsetDateTime, limit: u32) -> Result<u64, PortError> {
        let mut connection = self.database.connection().await?;
        let deleted = diesel::sql_query(
            "DELETE FROM labdata.device_period it USING ( \
                 SELECT organization_id, instrument_id, first_seen FROM labdata.device_period \
                 WHERE last_seen < $1 ORDER BY last_seen LIMIT $2 FOR UPDATE SKIP LOCKED) old \
             WHERE it.organization_id = old.organization_id \
             AND it.instrument_id = old.instrument_id AND it.first_seen = old.first_seen",
        )
        .bind::<Timestamptz, _>(before)
        .bind::<BigInt, _>(i64::from(limit))
        .execute(&mut connection)
        .await
        .map_err(port_error)?;
        Ok(u64::try_from(deleted).unwrap_or(u64::MAX))
    }
}
