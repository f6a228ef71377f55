//! Health and figures of the database.

use async_trait::async_trait;
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable, Timestamptz},
};
use diesel_async::RunQueryDsl;
use labdata_ports::{
    PortError,
    maintenance::{ConnectionCounts, StoreFigures, StoreHealth},
};
use time::OffsetDateTime;

use crate::database::{errors::port_error, pool::Database};

/// Figures of the platform. Each subquery reads an index or a table of pending entries only.
const FIGURES: &str = "SELECT \
     w.queued_runs, w.running_runs, w.oldest_queued_run_at, \
     w.pending_trainings, w.running_trainings, w.oldest_pending_training_at, \
     d.online_instruments, d.offline_instruments, d.failing_instruments, d.queued_instrument_files, \
     (SELECT min(created_at) FROM labdata.event) AS oldest_event_at, \
     (SELECT min(recorded_at) FROM labdata.notice) AS oldest_notice_at, \
     (SELECT min(n.created_at) FROM labdata.notification_email e \
         JOIN labdata.notification n ON n.id = e.notification_id \
             AND n.organization_id = e.organization_id \
         WHERE e.status = 'pending') AS oldest_email_at, \
     least((SELECT min(at) FROM labdata.webhook_outbox), (SELECT min(due.due_at) FROM labdata.webhook w CROSS JOIN LATERAL ( \
             SELECT due_at FROM labdata.webhook_delivery \
             WHERE webhook_id = w.id AND status = 'pending' ORDER BY due_at LIMIT 1) due \
         WHERE w.disabled_by IS NULL AND w.failing_since IS NULL)) AS oldest_delivery_due_at \
     FROM (SELECT \
         count(*) FILTER (WHERE kind = 'run' AND state = 'queued') AS queued_runs, \
         count(*) FILTER (WHERE kind = 'run' AND state = 'running') AS running_runs, \
         min(queued_at) FILTER (WHERE kind = 'run' AND state = 'queued') AS oldest_queued_run_at, \
         count(*) FILTER (WHERE kind = 'training' AND state = 'queued') AS pending_trainings, \
         count(*) FILTER (WHERE kind = 'training' AND state = 'running') AS running_trainings, \
         min(queued_at) FILTER (WHERE kind = 'training' AND state = 'queued') \
             AS oldest_pending_training_at \
         FROM labdata.work) w, \
     (SELECT \
         count(*) FILTER (WHERE announced_status = 'online') AS online_instruments, \
         count(*) FILTER (WHERE announced_status = 'offline') AS offline_instruments, \
         count(*) FILTER (WHERE announced_status = 'error') AS failing_instruments, \
         coalesce(sum(queued_files) FILTER (WHERE announced_status <> 'offline'), 0)::bigint \
             AS queued_instrument_files \
         FROM labdata.device) d";

#[derive(QueryableByName)]
struct FiguresRow {
    #[diesel(sql_type = BigInt)]
    queued_runs: i64,
    #[diesel(sql_type = BigInt)]
    running_runs: i64,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    oldest_queued_run_at: Option<OffsetDateTime>,
    #[diesel(sql_type = BigInt)]
    pending_trainings: i64,
    #[diesel(sql_type = BigInt)]
    running_trainings: i64,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    oldest_pending_training_at: Option<OffsetDateTime>,
    #[diesel(sql_type = BigInt)]
    online_instruments: i64,
    #[diesel(sql_type = BigInt)]
    offline_instruments: i64,
    #[diesel(sql_type = BigInt)]
    failing_instruments: i64,
    #[diesel(sql_type = BigInt)]
    queued_instrument_files: i64,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    oldest_event_at: Option<OffsetDateTime>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    oldest_notice_at: Option<OffsetDateTime>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    oldest_email_at: Option<OffsetDateTime>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    oldest_delivery_due_at: Option<OffsetDateTime>,
}

/// Health of the PostgreSQL database.
#[derive(Clone, Debug)]
pub struct PgStoreHealth {
    database: Database,
}

impl PgStoreHealth {
    /// Observes this database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait]
impl StoreHealth for PgStoreHealth {
    async fn probe(&self) -> Result<(), PortError> {
        self.database.probe().await
    }

    fn connections(&self) -> ConnectionCounts {
        self.database.connections()
    }

    async fn figures(&self) -> Result<StoreFigures, PortError> {
        let mut connection = self.database.connection().await?;
        let row: FiguresRow = diesel::sql_query(FIGURES)
            .get_result(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(StoreFigures {
            queued_runs: u64::try_from(row.queued_runs).unwrap_or_default(),
            running_runs: u64::try_from(row.running_runs).unwrap_or_default(),
            oldest_queued_run_at: row.oldest_queued_run_at,
            pending_trainings: u64::try_from(row.pending_trainings).unwrap_or_default(),
            running_trainings: u64::try_from(row.running_trainings).unwrap_or_default(),
            oldest_pending_training_at: row.oldest_pending_training_at,
            online_instruments: u64::try_from(row.online_instruments).unwrap_or_default(),
            offline_instruments: u64::try_from(row.offline_instruments).unwrap_or_default(),
            failing_instruments: u64::try_from(row.failing_instruments).unwrap_or_default(),
            queued_instrument_files: u64::try_from(row.queued_instrument_files).unwrap_or_default(),
            oldest_event_at: row.oldest_event_at,
            oldest_notice_at: row.oldest_notice_at,
            oldest_email_at: row.oldest_email_at,
            oldest_delivery_due_at: row.oldest_delivery_due_at,
        })
    }
}
