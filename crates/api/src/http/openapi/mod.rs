//! The OpenAPI document, generated from the endpoints.

mod headers;
mod responses;
mod schemas;
mod tags;

use std::sync::LazyLock;

use actix_web::web::Bytes;
use utoipa::openapi::{
    ComponentsBuilder, HttpMethod, InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, PathItem,
    Paths, RefOr, Required, Schema,
    path::{Operation, Parameter, ParameterBuilder, ParameterIn},
    schema::Type,
    security::{Http, HttpAuthScheme, SecurityScheme},
    server::{Server, ServerBuilder},
};

use labdata_operations::MAX_KEY_LENGTH;

use super::endpoint::{Documentation, Endpoint};

/// The security scheme's name in the document.
const BEARER: &str = "bearer";

/// The document as JSON, generated on first use.
pub type OpenApiJson = LazyLock<serde_json::Result<Bytes>>;

/// Returns the document of these endpoints.
#[must_use]
pub fn document(endpoints: Vec<Endpoint>) -> OpenApi {
    let mut paths = Paths::new();
    let mut request_schemas: Vec<(String, RefOr<Schema>)> = Vec::new();
    let mut response_schemas: Vec<(String, RefOr<Schema>)> = Vec::new();
    for mut endpoint in endpoints {
        let Some(documentation) = endpoint.documentation.take() else {
            continue;
        };
        let Documentation {
            method,
            mut operation,
            request_schemas: of_request,
            response_schemas: of_responses,
        } = documentation;
        request_schemas.extend(of_request);
        response_schemas.extend(of_responses);
        responses::complete(&mut operation, endpoint.access);
        schemas::describe_binary(&mut operation);
        schemas::open_inline_objects(&mut operation);
        // Every list has pages, and only lists take a cursor.
        let is_list = has_parameter(&operation, "cursor");
        headers::add_references(&mut operation, endpoint.is_idempotent, is_list);
        if endpoint.is_idempotent {
            let parameters = operation.parameters.get_or_insert_default();
            parameters.push(idempotency_key().into());
        }
        add(&mut paths, endpoint.path, method, operation);
    }
    for (_, schema) in &mut request_schemas {
        schemas::simplify(schema);
        schemas::bound_texts(schema);
        schemas::open_objects(schema);
    }
    // Only responses: serde writes every field, while a request may leave optional ones out.
    for (_, schema) in &mut response_schemas {
        schemas::require_always_present(schema);
        schemas::open_objects(schema);
    }
    let key = Http::builder()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key of the platform: `ldk_<prefix>_<secret>`"))
        .build();
    let mut components = ComponentsBuilder::new()
        .schemas_from_iter(request_schemas)
        .schemas_from_iter(response_schemas)
        .security_scheme(BEARER, SecurityScheme::Http(key))
        .build();
    headers::add_components(&mut components);
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Lab Data Platform API")
                .version("1.0.0")
                .description(Some(DESCRIPTION))
                .build(),
        )
        .servers(Some([this_server()]))
        .tags(Some(tags::all()))
        .paths(paths)
        .components(Some(components))
        .build()
}

const DESCRIPTION: &str = "Files, jobs and their executions, and transactional data writes of a \
    laboratory. Everything belongs to the organization of the API key. See docs/API.md for errors \
    and paging.";

/// The server that the document came from.
fn this_server() -> Server {
    ServerBuilder::new()
        .url("/")
        .description(Some("This installation"))
        .build()
}

fn add(paths: &mut Paths, path: String, method: HttpMethod, operation: Operation) {
    let item = PathItem::new(method, operation);
    match paths.paths.get_mut(&path) {
        Some(present) => present.merge_operations(item),
        None => {
            paths.paths.insert(path, item);
        }
    }
}

fn has_parameter(operation: &Operation, name: &str) -> bool {
    let mut parameters = operation.parameters.iter().flatten();
    parameters.any(|parameter| matches!(parameter, RefOr::T(parameter) if parameter.name == name))
}

fn idempotency_key() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(MAX_KEY_LENGTH))
        .pattern(Some(r"^[!-~]([\t -~]*[!-~])?$"));
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "Names the request, 1 to 255 ASCII characters of the client's choice. Sent again within 24 \
             hours it has no second effect: the first answer is returned, with \
             `Idempotent-Replayed: true`. Another body under the same key is refused with 422. \
             Answers of 4xx and 5xx are not stored.",
        ))
        .schema(Some(schema.build()))
        .build()
}
