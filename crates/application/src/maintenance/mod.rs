//! Operation of the platform: health, figures, dependencies, secrets, periodic tasks, disk space.

pub mod check_dependencies;
pub mod check_health;
pub mod disk_reserve;
pub mod ensure_secret;
pub(crate) mod freeing_space;
pub mod measure_platform;
pub mod new_request_id;
pub mod periodic_pass;
