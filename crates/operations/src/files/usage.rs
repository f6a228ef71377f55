//! `GET /api/v1/files/usage`

use labdata_application::{
    Error,
    files::get_storage_usage::{StorageUsage, get_storage_usage},
};
use labdata_request_body::output;

use crate::{About, Call, Method, Operation, Read, Tag};

output! {
    /// What an organization stores.
    #[derive(Debug)]
    pub struct StorageUsageView as "StorageUsage" from usage: StorageUsage {
        /// Bytes of its files and datasets, with those of uploads that are not confirmed yet.
        used_bytes: u64 = usage.used_bytes,
        /// Most bytes that it may store; null without a limit.
        quota_bytes: Option<u64> = usage.quota.bytes(),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_storage_usage",
        method: Method::Get,
        path: "/api/v1/files/usage",
        tag: Tag::Files,
        summary: "Shows how much the organization stores",
        description: "Uploads that would exceed the quota are refused with 507. The operator sets it for \
            all organizations.",
        returns: "The usage",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read>) -> Result<StorageUsageView, Error> {
    Ok(get_storage_usage(&call.ports, &call.actor).await?.into())
}
