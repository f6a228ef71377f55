//! Stored responses of repeated requests.

pub mod begin_request;
pub mod shown_tables;
pub mod sweep_responses;
pub mod unit_of_work;
