//! Several servers and workers on one database and one bucket, under the mixed load of `labdata-load`.

mod balancer;
mod clock;
mod failover;
mod faults;
mod killed_restore;
mod lab;
mod ledger;
mod members;
mod network;
mod replica;
mod replicated;
mod webhook_outage;
