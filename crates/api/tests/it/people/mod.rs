//! Users, organizations, API keys and their scopes.

mod api_keys;
mod authentication;
mod authorization;
mod run_keys;
mod sessions;
