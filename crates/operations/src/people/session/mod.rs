//! `/api/v1/session`: people who sign in with a browser.

use crate::Operation;
pub mod begin;
pub mod end;
pub mod get;

pub(super) fn operations() -> Vec<Operation> {
    vec![begin::operation(), get::operation(), end::operation()]
}
