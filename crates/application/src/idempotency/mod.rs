//! Stored responses of repeated requests.

pub mod respond_once;
pub mod sweep_responses;
