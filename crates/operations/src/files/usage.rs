//! `GET /api/v1/files/usage`

use labdata_application::{
    Error,
    files::get_storage_usage::{StorageUsage, get_storage_usage},
};
use labdata_domain::storage::StoredKind;
use labdata_request_body::{names, output};

use crate::{About, Call, Method, Operation, Read, Tag};

names! {
    /// Kind of what an organization stores: `responses` are those stored for idempotency keys, `history`
    /// has earlier values of rows, `trash` what was deleted and can be restored.
    pub StoredKindName = StoredKind::ALL.map(StoredKind::as_str);
}

output! {
    /// Bytes of one kind.
    #[derive(Debug)]
    pub struct StoredBytesView as "StoredBytes" {
        /// The kind.
        pub kind: StoredKindName,
        /// Its bytes.
        pub bytes: u64,
    }
}

output! {
    /// Storage that an organization uses.
    #[derive(Debug)]
    pub struct StorageUsageView as "StorageUsage" from usage: StorageUsage {
        /// Bytes of all kinds, with those of uploads that are not confirmed yet.
        used_bytes: u64 = usage.used.total(),
        /// Most bytes that it may store; null without a limit.
        quota_bytes: Option<u64> = usage.quota.bytes(),
        /// The bytes of each kind.
        kinds: Vec<StoredBytesView> = usage
            .used
            .iter()
            .map(|(kind, bytes)| StoredBytesView {
                kind: kind.as_str().into(),
                bytes,
            })
            .collect(),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_storage_usage",
        method: Method::Get,
        path: "/api/v1/files/usage",
        tag: Tag::Files,
        summary: "Shows how much the organization stores",
        description: "All kinds count for the quota. Uploads that would exceed the quota are refused with 507. The operator sets it for \
            all organizations.",
        returns: "The usage",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read>) -> Result<StorageUsageView, Error> {
    Ok(get_storage_usage(&call.services, &call.actor).await?.into())
}
