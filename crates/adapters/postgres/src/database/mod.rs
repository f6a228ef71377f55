//! Connections, transactions, batching, SQL chunks and migrations.

pub(crate) mod combine;
pub(crate) mod condition;
pub(crate) mod connect;
pub(crate) mod duplicates;
pub(crate) mod errors;
pub(crate) mod idempotency;
pub(crate) mod language;
pub(crate) mod listen;
pub(crate) mod loan;
pub(crate) mod migrate;
pub(crate) mod names;
pub(crate) mod paging;
pub(crate) mod password_guard;
pub(crate) mod pool;
pub(crate) mod prepared;
pub(crate) mod relation;
pub(crate) mod row_ranges;
pub(crate) mod server;
pub(crate) mod shares;
pub(crate) mod sql;
pub(crate) mod stored_responses;
pub(crate) mod tls;
pub(crate) mod transaction;
pub(crate) mod units;
pub(crate) mod violation;
