//! Users, organizations, API keys and their scopes.

mod access_matrix;
mod api_keys;
mod audit;
mod authentication;
mod authorization;
mod demotion;
mod groups;
mod invitation_emails;
mod oidc;
mod rights_matrix;
mod roles;
mod run_keys;
mod sessions;
