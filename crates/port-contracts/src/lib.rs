//! Contract suites of the ports: the required behavior, written once and run by each adapter.
//!
//! A suite is a module of clauses: documented `pub async fn`s, each of which states one requirement
//! of a port and takes a fresh [`Harness`]. The macro of a suite (such as `api_keys!`)
//! makes one test of each clause. It expands in the tests of the adapter and uses the adapter's
//! async runtime, so this crate depends on none.
//!
//! **Invariants.** No runtime, no driver and no adapter in the dependency tree. Clauses use a
//! subject only through its port, never its storage. Time and ids are made here ([`given`]), so a
//! clause never depends on the clock.
//!
//! ```ignore
//! use std::sync::Arc;
//! use labdata_port_contracts::{Harness, Subject, async_trait};
//! use labdata_ports::people::tenancy::TenancyRepository;
//!
//! struct MyHarness(MyStore);
//!
//! #[async_trait]
//! impl Harness for MyHarness {
//!     async fn fresh() -> Self { Self(MyStore::empty().await) }
//! }
//!
//! impl Subject<dyn TenancyRepository> for MyHarness {
//!     fn subject(&self) -> Arc<dyn TenancyRepository> { Arc::new(self.0.tenancy()) }
//! }
//!
//! labdata_port_contracts::tenancy!(MyHarness);
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "a clause is a test: it fails by panicking, and that is all it does when it fails"
)]

pub mod agent;
pub mod assertions;
pub mod audit;
pub mod catalog;
pub mod data;
pub mod events;
pub mod executions;
pub mod files;
pub mod fixtures;
pub mod given;
mod harness;
pub mod idempotency;
pub mod instruments;
pub mod jobs;
pub mod lab;
pub mod maintenance;
pub mod models;
pub mod notifications;
pub mod outward;
pub mod paging;
pub mod people;
pub mod reading;
mod suite;
pub mod trash;
pub mod triggers;
pub mod work;

pub use async_trait::async_trait;
pub use harness::{Fixture, Harness, Itself, Subject};
pub(crate) use suite::suite;

/// Makes the tests of every suite of the ports that share one store.
#[macro_export]
macro_rules! store {
    ($harness:ty $(, $test:meta)?) => {
        $crate::audit! { $harness $(, $test)? }
        $crate::tenancy! { $harness $(, $test)? }
        $crate::users! { $harness $(, $test)? }
        $crate::groups! { $harness $(, $test)? }
        $crate::invitations! { $harness $(, $test)? }
        $crate::saved_views! { $harness $(, $test)? }
        $crate::api_keys! { $harness $(, $test)? }
        $crate::oidc! { $harness $(, $test)? }
        $crate::sessions! { $harness $(, $test)? }
        $crate::chats! { $harness $(, $test)? }
        $crate::agent_runs! { $harness $(, $test)? }
        $crate::write_sessions! { $harness $(, $test)? }
        $crate::instruments! { $harness $(, $test)? }
        $crate::instrument_changes! { $harness $(, $test)? }
        $crate::devices! { $harness $(, $test)? }
        $crate::annotations! { $harness $(, $test)? }
        $crate::datasets! { $harness $(, $test)? }
        $crate::jobs! { $harness $(, $test)? }
        $crate::job_changes! { $harness $(, $test)? }
        $crate::executions! { $harness $(, $test)? }
        $crate::execution_ends! { $harness $(, $test)? }
        $crate::files! { $harness $(, $test)? }
        $crate::file_ends! { $harness $(, $test)? }
        $crate::file_quota! { $harness $(, $test)? }
        $crate::file_sweeps! { $harness $(, $test)? }
        $crate::file_lists! { $harness $(, $test)? }
        $crate::trash! { $harness $(, $test)? }
        $crate::trash_access! { $harness $(, $test)? }
        $crate::trash_columns! { $harness $(, $test)? }
        $crate::trash_files! { $harness $(, $test)? }
        $crate::trash_names! { $harness $(, $test)? }
        $crate::trash_undo! { $harness $(, $test)? }
        $crate::tables_of_datasets! { $harness $(, $test)? }
        $crate::notifications! { $harness $(, $test)? }
        $crate::inboxes! { $harness $(, $test)? }
        $crate::notification_caps! { $harness $(, $test)? }
        $crate::notification_emails! { $harness $(, $test)? }
        $crate::idempotency! { $harness $(, $test)? }
        $crate::models! { $harness $(, $test)? }
        $crate::training_queue_limit! { $harness $(, $test)? }
        $crate::training_ends! { $harness $(, $test)? }
        $crate::training_reports! { $harness $(, $test)? }
        $crate::training_notices! { $harness $(, $test)? }
        $crate::triggers! { $harness $(, $test)? }
        $crate::schedules! { $harness $(, $test)? }
        $crate::backfills! { $harness $(, $test)? }
        $crate::event_log! { $harness $(, $test)? }
        $crate::work_queue! { $harness $(, $test)? }
        $crate::work_queue_ends! { $harness $(, $test)? }
        $crate::work_logs! { $harness $(, $test)? }
        $crate::runs_of_jobs! { $harness $(, $test)? }
        $crate::ends_of_runs! { $harness $(, $test)? }
        $crate::run_nonces! { $harness $(, $test)? }
        $crate::events! { $harness $(, $test)? }
        $crate::catalog! { $harness $(, $test)? }
        $crate::catalog_columns! { $harness $(, $test)? }
        $crate::catalog_drops! { $harness $(, $test)? }
        $crate::catalog_scripted! { $harness $(, $test)? }
        $crate::data_write! { $harness $(, $test)? }
        $crate::data_refusals! { $harness $(, $test)? }
        $crate::data_attribution! { $harness $(, $test)? }
        $crate::data_series! { $harness $(, $test)? }
        $crate::data_read_series! { $harness $(, $test)? }
        $crate::data_modify! { $harness $(, $test)? }
        $crate::data_delete! { $harness $(, $test)? }
        $crate::data_reach! { $harness $(, $test)? }
        $crate::data_read! { $harness $(, $test)? }
        $crate::data_pages! { $harness $(, $test)? }
        $crate::data_order! { $harness $(, $test)? }
        $crate::data_stream! { $harness $(, $test)? }
        $crate::data_revert! { $harness $(, $test)? }
        $crate::data_history! { $harness $(, $test)? }
        $crate::data_restore! { $harness $(, $test)? }
        $crate::data_restore_unrecorded! { $harness $(, $test)? }
        $crate::data_as_of! { $harness $(, $test)? }
        $crate::data_moments! { $harness $(, $test)? }
        $crate::data_retyped! { $harness $(, $test)? }
        $crate::data_former_series! { $harness $(, $test)? }
        $crate::data_names! { $harness $(, $test)? }
        $crate::data_changes! { $harness $(, $test)? }
        $crate::data_races! { $harness $(, $test)? }
        $crate::data_interleavings! { $harness $(, $test)? }
        $crate::work_interleavings! { $harness $(, $test)? }
        $crate::failure_notices! { $harness $(, $test)? }
        $crate::periodic_tasks! { $harness $(, $test)? }
        $crate::store_health! { $harness $(, $test)? }
        $crate::sql_logins! { $harness $(, $test)? }
        $crate::webhooks! { $harness $(, $test)? }
        $crate::webhook_outbox! { $harness $(, $test)? }
        $crate::webhook_deliveries! { $harness $(, $test)? }
    };
}
