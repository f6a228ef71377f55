//! The clouds keep what [`labdata_ports::files::blob`] promises, each against a server of its kind.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "these are tests, their helpers included: what is not as expected fails them"
)]

mod azure;
mod azurite;
mod bodies;
mod gcs;
mod gcs_server;
mod goog4;
mod goog4_vectors;
mod s3;
mod s3_server;

use labdata_object_store::Storage;

/// Opens a storage with these variables and no others.
async fn open(url: &str, environment: &[(&str, &str)]) -> Result<Storage, String> {
    let environment: Vec<_> = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let location = url.parse().expect("a location");
    labdata_object_store::open(&location, &environment, std::env::temp_dir())
        .await
        .map_err(|error| error.to_string())
}
