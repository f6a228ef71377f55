//! Operation of the platform: health, figures, secrets, periodic tasks.

pub mod check_health;
pub mod ensure_secret;
pub mod measure_platform;
pub mod new_request_id;
pub mod periodic_pass;
