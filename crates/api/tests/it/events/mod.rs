//! `/api/v1/events`

mod follow;
mod resume;
mod stream;

pub(crate) use stream::{PATH, Stream};
