//! Response headers in the document.

use serde_json::{Map, Value, json};

use super::Idempotency;
use crate::Operation;

const REQUEST_ID: &str = "X-Request-Id";
const LINK: &str = "Link";
const RETRY_AFTER: &str = "Retry-After";
const IDEMPOTENT_REPLAYED: &str = "Idempotent-Replayed";

/// The headers that responses refer to.
pub(super) fn components() -> Value {
    let text = |example: &str| json!({ "type": "string", "examples": [example] });
    json!({
        REQUEST_ID: {
            "description": "Id of the request, as in the log of the platform: the one that the request \
                brought in `X-Request-Id`, else a new one. On every response.",
            "schema": text("01a3f0c2-9d5e-7c41-8f6b-2e1d4c5b6a70"),
        },
        LINK: {
            "description": "URL of the next page. Absent on the last page.",
            "schema": text("<https://lab.example.org/api/v1/files?cursor=eyJpZCI6MX0>; rel=\"next\""),
        },
        RETRY_AFTER: {
            "description": "Seconds to wait before the next attempt. Absent where waiting alone does \
                not help.",
            "schema": { "type": "integer", "minimum": 0, "examples": [2] },
        },
        IDEMPOTENT_REPLAYED: {
            "description": "`true` if this is the stored response to an earlier request with the same \
                `Idempotency-Key`. Absent otherwise.",
            "schema": text("true"),
        },
    })
}

/// The headers of a response of that status. A list, which is read by pages, links to the next one.
pub(super) fn of(operation: &Operation, status: u16, is_list: bool) -> Value {
    let is_success = (200..300).contains(&status);
    let is_stored = operation.idempotency == Idempotency::ByKey;
    let names = [
        (true, REQUEST_ID),
        (is_success && is_list, LINK),
        (is_success && is_stored, IDEMPOTENT_REPLAYED),
        (matches!(status, 429 | 503), RETRY_AFTER),
    ];
    let present = names.into_iter().filter(|(is_present, _)| *is_present);
    let mut headers: Map<String, Value> = present
        .map(|(_, name)| {
            let reference = json!({ "$ref": format!("#/components/headers/{name}") });
            (name.to_owned(), reference)
        })
        .collect();
    let own = operation.response_headers.iter().filter(|_| is_success);
    headers.extend(own.map(|(name, description)| {
        let header = json!({ "description": description, "schema": { "type": "string" } });
        ((*name).to_owned(), header)
    }));
    headers.into()
}
