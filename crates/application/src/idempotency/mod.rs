//! Stored responses of repeated requests.

pub mod begin_request;
pub mod sweep_responses;
pub mod unit_of_work;
