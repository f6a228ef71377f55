//! Several servers and workers on one database and one bucket, under the mixed load of `labdata-load`.

mod balancer;
mod failover;
mod killed_restore;
mod kills;
mod lab;
mod ledger;
mod members;
mod replica;
mod replicated;
mod webhook_outage;
