//! Response headers in the document.

use actix_web::http::header::{HeaderName, LINK, RETRY_AFTER};
use serde_json::Value;
use utoipa::openapi::{
    Components, HeaderBuilder, ObjectBuilder, Ref, RefOr, Response, path::Operation, schema::Type,
};

use crate::http::{observe::REQUEST_ID, once::IDEMPOTENT_REPLAYED};

/// A response header: its name, its type, its description and an example.
struct Described {
    header: HeaderName,
    /// The name as it is usually written.
    name: &'static str,
    schema_type: Type,
    description: &'static str,
    example: &'static str,
}

const HEADERS: [Described; 4] = [
    Described {
        header: REQUEST_ID,
        name: "X-Request-Id",
        schema_type: Type::String,
        description: "Id of the request, as in the log of the platform: the one that the request \
            brought in `X-Request-Id`, else a new one. On every response.",
        example: "01a3f0c2-9d5e-7c41-8f6b-2e1d4c5b6a70",
    },
    Described {
        header: LINK,
        name: "Link",
        schema_type: Type::String,
        description: "URL of the next page. Absent on the last page.",
        example: "<https://lab.example.org/api/v1/files?cursor=eyJpZCI6MX0>; rel=\"next\"",
    },
    Described {
        header: RETRY_AFTER,
        name: "Retry-After",
        schema_type: Type::Integer,
        description: "Seconds to wait before the next attempt. Absent where waiting alone does not \
            help.",
        example: "2",
    },
    Described {
        header: IDEMPOTENT_REPLAYED,
        name: "Idempotent-Replayed",
        schema_type: Type::String,
        description: "`true` if this is the stored answer to an earlier request with the same \
            `Idempotency-Key`. Absent otherwise.",
        example: "true",
    },
];

/// Adds the headers to the components.
pub(super) fn add_components(components: &mut Components) {
    for described in HEADERS {
        let example = described.example;
        let example = example
            .parse::<u32>()
            .map_or_else(|_| Value::from(example), Value::from);
        let is_number = described.schema_type == Type::Integer;
        let schema = ObjectBuilder::new()
            .schema_type(described.schema_type)
            .minimum(is_number.then_some(0))
            .examples([example]);
        let header = HeaderBuilder::new()
            .schema(Some(schema.build()))
            .description(Some(described.description))
            .build();
        components
            .headers
            .insert(described.name.to_owned(), header.into());
    }
}

/// Refers to the headers that the responses of an operation carry.
///
/// # Arguments
/// `is_idempotent`: the operation honors `Idempotency-Key`; `is_list`: it responds by pages.
pub(super) fn add_references(operation: &mut Operation, is_idempotent: bool, is_list: bool) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else {
            continue;
        };
        let is_success = status.starts_with('2');
        refer(response, &REQUEST_ID);
        if is_success && is_list {
            refer(response, &LINK);
        }
        if is_success && is_idempotent {
            refer(response, &IDEMPOTENT_REPLAYED);
        }
        if matches!(status.as_str(), "429" | "503") {
            refer(response, &RETRY_AFTER);
        }
    }
}

fn refer(response: &mut Response, header: &HeaderName) {
    for described in HEADERS.iter().filter(|it| it.header == *header) {
        let reference = Ref::new(format!("#/components/headers/{}", described.name));
        response
            .headers
            .insert(described.name.to_owned(), RefOr::Ref(reference));
    }
}
