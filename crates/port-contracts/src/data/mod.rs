//! All suites of [`labdata_ports::data::DataStore`] together, and that of saved views.

pub mod as_of;
pub mod attribution;
pub mod changes;
pub mod delete;
pub mod history;
pub mod interleavings;
pub mod lab;
pub mod modify;
pub mod moments;
pub mod names;
pub mod order;
pub mod pages;
pub mod races;
pub mod random;
pub mod reach;
pub mod read;
pub mod read_series;
pub mod refusals;
pub mod restore;
pub mod restore_unrecorded;
pub mod retyped;
pub mod revert;
pub mod saved_views;
pub mod series;
pub mod stream;
pub mod write;
