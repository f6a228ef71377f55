//! Users, organizations, API keys and their scopes.

mod access;
mod access_matrix;
mod api_keys;
mod audit;
mod authentication;
mod authorization;
mod demotion;
mod groups;
mod invitation_emails;
mod invitations;
mod narrowed_keys;
mod oidc;
mod reach;
mod rights_matrix;
mod roles;
mod run_keys;
mod sessions;

pub(crate) use access::Access;
