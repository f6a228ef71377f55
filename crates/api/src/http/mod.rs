//! The framework of the endpoints: requests, responses, errors, metrics.
//!
//! An endpoint names what it needs in the type of its one argument, [`Call`]; see
//! `docs/ADDING-AN-ENDPOINT.md`.

pub mod accept;
pub mod body;
pub mod call;
pub mod client_timeout;
pub mod credential;
pub mod endpoint;
pub mod error;
pub(crate) mod follow;
pub(crate) mod json_line;
mod limits;
pub mod metrics;
pub mod multipart;
pub mod observe;
pub mod once;
mod paced;
pub mod public_url;
pub mod rate_limit;
pub mod request;
pub(crate) mod response;
pub mod scope;
pub mod security_headers;
mod serve;
pub mod server;
pub mod spooled_form;
pub(crate) mod table_stream;

pub use body::{JsonBody, NoBody};
pub use call::Call;
pub use error::{ApiError, ApiResult};
pub use labdata_operations::{Admin, AnyScope, OrNotFound, Read, Write};
