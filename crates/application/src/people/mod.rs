//! Users, organizations, API keys and their scopes.

pub mod authenticate;
pub(crate) mod check_key;
pub mod create_api_key;
pub mod create_user;
mod email_invitation;
pub mod first_start;
pub mod groups;
pub mod identify;
pub mod invitations;
pub mod key_cache;
pub mod list_api_keys;
pub mod list_users;
pub mod named_key;
pub mod oidc;
pub mod operator_keys;
pub mod revoke_api_key;
pub mod sessions;
pub mod update_user;
