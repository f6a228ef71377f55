//! Stored responses of repeated requests.

pub mod answer_once;
pub mod sweep_answers;
