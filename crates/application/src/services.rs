//! Everything that use cases work with, in one place.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex},
    time::Duration,
};

use labdata_domain::{
    instruments::DeviceWatch,
    jobs::TriggeredVersion,
    notifications::Caps,
    storage::StorageQuota,
    work::{LeaseWatch, LogRetention},
};
use labdata_ports::{Ports, notifications::mailer::Mailer};

use crate::{
    files::{ongoing_uploads::OngoingUploads, quota::UnrecordedBytes},
    idempotency::shown_tables::ShownTables,
    maintenance::check_dependencies::RecentChecks,
    models::prediction::ServedModels,
    outward::sql_logins::SqlAccess,
    people::{key_cache::KeyCache, oidc::OidcService},
    slots::Slots,
};

/// Default of [`Services::export_time`].
pub const EXPORT_TIME: Duration = Duration::from_hours(1);

/// Default of [`Services::trash_days`].
pub const TRASH_DAYS: u32 = 30;

/// The ports, the settings of use cases, and what the use cases of one process share. Every use case takes
/// it by reference, first. The fields of the ports are reached as its own.
#[derive(Clone)]
pub struct Services {
    /// The ports.
    pub ports: Ports,
    /// Quota of an organization.
    pub storage_quota: StorageQuota,
    /// Maximum time in which a table is sent while it is read.
    pub export_time: Duration,
    /// Retention of logs.
    pub log_retention: LogRetention,
    /// Caps on notifications.
    pub notification_caps: Caps,
    /// Sender of e-mails; `None` where the operator has set no mail server.
    pub mailer: Option<Arc<dyn Mailer>>,
    /// Writers may make tables and add columns.
    pub writers_define_tables: bool,
    /// Days for which earlier versions of rows and series are retained; for ever unless given.
    pub history_days: Option<u32>,
    /// Days for which deleted files, tables and columns can be restored; with 0 they are deleted at once.
    pub trash_days: u32,
    /// Version of a script that triggers, schedules and backfills run.
    pub triggered_version: TriggeredVersion,
    /// Sign-in by an identity provider, if there is one.
    pub oidc: Option<Arc<OidcService>>,
    /// PostgreSQL for people's tools.
    pub sql: SqlAccess,
    /// Limits of concurrent work.
    pub slots: Arc<Slots>,
    /// Bytes of what has no record of its size.
    pub unrecorded_bytes: Arc<UnrecordedBytes>,
    /// Uploads under way.
    pub ongoing_uploads: Arc<OngoingUploads>,
    /// Tables whose data the response shows, in a unit of work.
    pub shown_tables: ShownTables,
    /// Keys that were checked a moment ago.
    pub key_cache: Arc<KeyCache>,
    /// Models that predicted a moment ago.
    pub served_models: Arc<ServedModels>,
    /// Checks of dependencies a moment ago.
    pub recent_checks: Arc<RecentChecks>,
    /// Leases of workers, as this process has seen them.
    pub lease_watch: Arc<Mutex<LeaseWatch>>,
    /// Devices of instruments, as this process has seen them.
    pub device_watch: Arc<Mutex<DeviceWatch>>,
}

impl Services {
    /// Services of a new process.
    #[must_use]
    pub fn new(ports: Ports, storage_quota: StorageQuota, notification_caps: Caps) -> Self {
        Self {
            ports,
            storage_quota,
            export_time: EXPORT_TIME,
            log_retention: LogRetention::default(),
            notification_caps,
            mailer: None,
            writers_define_tables: true,
            history_days: None,
            trash_days: TRASH_DAYS,
            triggered_version: TriggeredVersion::default(),
            oidc: None,
            sql: SqlAccess::default(),
            slots: Arc::default(),
            unrecorded_bytes: Arc::default(),
            ongoing_uploads: Arc::default(),
            shown_tables: ShownTables::default(),
            key_cache: Arc::default(),
            served_models: Arc::default(),
            recent_checks: Arc::default(),
            lease_watch: Arc::default(),
            device_watch: Arc::default(),
        }
    }

    /// Services of a new process without quota and with the default caps.
    #[must_use]
    pub fn unlimited(ports: Ports) -> Self {
        Self::new(ports, StorageQuota::UNLIMITED, Caps::default())
    }
}

impl Deref for Services {
    type Target = Ports;

    fn deref(&self) -> &Ports {
        &self.ports
    }
}

impl DerefMut for Services {
    fn deref_mut(&mut self) -> &mut Ports {
        &mut self.ports
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}
