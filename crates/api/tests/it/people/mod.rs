//! Users, organizations, API keys and their scopes.

mod api_keys;
mod audit;
mod authentication;
mod authorization;
mod rights_matrix;
mod run_keys;
mod sessions;
