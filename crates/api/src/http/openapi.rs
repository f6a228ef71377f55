//! The OpenAPI document, generated from the endpoints.

use std::sync::LazyLock;

use actix_web::web::Bytes;
use labdata_domain::keys::scope::Scope;
use utoipa::{
    ToSchema,
    openapi::{
        ComponentsBuilder, ContentBuilder, HttpMethod, InfoBuilder, ObjectBuilder, OpenApi,
        OpenApiBuilder, PathItem, Paths, Ref, RefOr, Required, Response, ResponseBuilder, Schema,
        path::{Operation, Parameter, ParameterBuilder, ParameterIn},
        schema::Type,
        security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
    },
};

use super::{
    endpoint::{Documentation, Endpoint},
    error::{ErrorBody, InternalErrorBody, ShapeErrorBody},
    scope::Access,
};

/// The security scheme's name in the document.
const BEARER: &str = "bearer";

/// The document as JSON, generated on first use.
pub type OpenApiJson = LazyLock<serde_json::Result<Bytes>>;

/// Returns the document of these endpoints.
#[must_use]
pub fn document(endpoints: Vec<Endpoint>) -> OpenApi {
    let mut paths = Paths::new();
    let mut schemas: Vec<(String, RefOr<Schema>)> = Vec::new();
    add_schema::<ErrorBody>(&mut schemas);
    add_schema::<ShapeErrorBody>(&mut schemas);
    add_schema::<InternalErrorBody>(&mut schemas);
    for mut endpoint in endpoints {
        let Some(documentation) = endpoint.documentation.take() else {
            continue;
        };
        let Documentation {
            method,
            mut operation,
            schemas: own,
        } = documentation;
        schemas.extend(own);
        match endpoint.access {
            Access::Open => {}
            Access::AnyKey => complete(&mut operation, None, endpoint.takes_json),
            Access::Scope(scope) => complete(&mut operation, Some(scope), endpoint.takes_json),
        }
        if endpoint.is_idempotent {
            operation
                .parameters
                .get_or_insert_default()
                .push(idempotency_key().into());
        }
        add(&mut paths, endpoint.path, method, operation);
    }
    schemas.sort_by(|(left, _), (right, _)| left.cmp(right));
    let key = Http::builder()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key of the platform: `ldk_<prefix>_<secret>`"))
        .build();
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Lab Data Platform API")
                .version("1.0.0")
                .description(Some(DESCRIPTION))
                .build(),
        )
        .paths(paths)
        .components(Some(
            ComponentsBuilder::new()
                .schemas_from_iter(schemas)
                .security_scheme(BEARER, SecurityScheme::Http(key))
                .build(),
        ))
        .build()
}

const DESCRIPTION: &str = "Files, jobs and their executions, and transactional data writes of a \
    laboratory. Everything belongs to the organization of the API key. See docs/API.md for errors \
    and paging.";

fn add_schema<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
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

/// Adds what follows from the endpoint's type: the key, its scope, and the answers that every
/// operation has. What the endpoint documents itself stays.
fn complete(operation: &mut Operation, scope: Option<Scope>, takes_json: bool) {
    let scopes = scope.map(Scope::as_str);
    operation.security = Some(vec![SecurityRequirement::new(BEARER, scopes)]);
    let mut answer = |status: &str, description: &str, schema: &str| {
        let answers = &mut operation.responses.responses;
        answers
            .entry(status.to_owned())
            .or_insert_with(|| error_response(description, schema).into());
    };
    answer(
        "400",
        "What was asked does not hold; nothing was changed",
        "ErrorBody",
    );
    answer("401", "No valid API key was shown", "ErrorBody");
    if let Some(scope) = scope {
        answer(
            "403",
            &format!("The API key lacks the {scope} scope"),
            "ErrorBody",
        );
    }
    answer("404", "No such thing in the organization", "ErrorBody");
    answer(
        "422",
        "The request does not have the right shape; every problem is listed",
        "ShapeErrorBody",
    );
    answer("500", "The platform failed", "InternalErrorBody");
    answer(
        "507",
        "The disk of the platform is full; nothing was stored",
        "ErrorBody",
    );
    if takes_json {
        answer("413", "The body has 4,718,592 bytes or more", "ErrorBody");
        answer(
            "415",
            "The body is not JSON by its Content-Type",
            "ErrorBody",
        );
    }
}

fn idempotency_key() -> Parameter {
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "Names the request, 1 to 255 characters of the client's choice. Sent again within 24 \
             hours it has no second effect: the first answer is returned, with \
             `Idempotent-Replayed: true`. Another body under the same key is refused with 422. \
             Answers of 4xx and 5xx are not kept.",
        ))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).build()))
        .build()
}

fn error_response(description: &str, schema: &str) -> Response {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(schema)))
        .build();
    ResponseBuilder::new()
        .description(description)
        .content("application/json", content)
        .build()
}
