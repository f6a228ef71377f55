//! `/api/v1/session`: people who sign in with a browser.

pub mod begin;
pub mod end;
pub mod oidc;
