//! Stored responses of repeated requests.

pub mod sweep_answers;
