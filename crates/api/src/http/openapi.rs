//! The OpenAPI document, generated from the endpoints.

use labdata_domain::keys::scope::Scope;
use labdata_request_body::{Definitions, Shape};
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{
        ComponentsBuilder, ContentBuilder, HttpMethod, InfoBuilder, ObjectBuilder, OpenApi,
        OpenApiBuilder, PathItem, Paths, Ref, RefOr, Required, Response, ResponseBuilder, Schema,
        path::{Operation, Parameter, ParameterBuilder, ParameterIn},
        request_body::{RequestBody, RequestBodyBuilder},
        schema::Type,
        security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
    },
};

use super::{
    body::BodyDescription,
    endpoint::{Documentation, Endpoint},
    error::{ErrorBody, InternalErrorBody, ShapeErrorBody},
};
use crate::routes;

/// The security scheme's name in the document.
const BEARER: &str = "bearer";

/// The prefix of references to schemas.
pub(super) const SCHEMAS: &str = "#/components/schemas/";

/// The document of every endpoint.
#[must_use]
pub fn openapi() -> OpenApi {
    document(routes::all())
}

fn document(endpoints: Vec<Endpoint>) -> OpenApi {
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
        if let Some(scope) = endpoint.scope {
            complete(&mut operation, scope, endpoint.takes_json);
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
fn complete(operation: &mut Operation, scope: Scope, takes_json: bool) {
    operation.security = Some(vec![SecurityRequirement::new(BEARER, [scope.as_str()])]);
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
    answer(
        "403",
        &format!("The API key lacks the {scope} scope"),
        "ErrorBody",
    );
    answer("404", "No such thing in the organization", "ErrorBody");
    answer(
        "422",
        "The request does not have the right shape; every problem is listed",
        "ShapeErrorBody",
    );
    answer("500", "The platform failed", "InternalErrorBody");
    if takes_json {
        answer("413", "The body has 4,718,592 bytes or more", "ErrorBody");
        answer(
            "415",
            "The body is not JSON by its Content-Type",
            "ErrorBody",
        );
    }
}

/// The parameters that a path and a query string declare.
pub(super) fn parameters<P: Shape, Q: Shape>(
    definitions: &mut Definitions,
) -> Vec<RefOr<Parameter>> {
    let path = P::properties(definitions)
        .into_iter()
        .map(|property| (ParameterIn::Path, property));
    let query = Q::properties(definitions)
        .into_iter()
        .map(|property| (ParameterIn::Query, property));
    path.chain(query)
        .map(|(parameter_in, property)| {
            ParameterBuilder::new()
                .name(property.name)
                .parameter_in(parameter_in)
                .required(required(property.is_required))
                .description(Some(property.description.clone()))
                .schema(Some(schema(property.as_parameter().into())))
                .build()
                .into()
        })
        .collect()
}

/// The request body that an endpoint declares.
pub(super) fn request_body(body: BodyDescription) -> RequestBody {
    let content = ContentBuilder::new()
        .schema(Some(schema(body.schema.into())))
        .build();
    RequestBodyBuilder::new()
        .content(body.content_type, content)
        .required(Some(required(body.is_required)))
        .build()
}

/// The schemas that bodies refer to.
pub(super) fn components(
    definitions: Definitions,
) -> impl Iterator<Item = (String, RefOr<Schema>)> {
    let schemas = definitions.into_schemas().into_iter();
    schemas.map(|(name, json)| (name.to_owned(), schema(json)))
}

const fn required(is_required: bool) -> Required {
    if is_required {
        Required::True
    } else {
        Required::False
    }
}

/// The schema in utoipa's types, which hold every keyword that readers use (tested below).
fn schema(json: Value) -> RefOr<Schema> {
    serde_json::from_value(json).unwrap_or_else(|_| Schema::default().into())
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

#[cfg(test)]
mod tests {
    use labdata_request_body::{
        fields::{optional, or, required},
        readers::*,
        shape,
    };
    use serde_json::json;

    use super::{Definitions, SCHEMAS, Value, components};

    shape! {
        /// Every reader.
        struct EveryReader {
            /// A text.
            text: String = required(text(1..=9).with("contentMediaType", "text/plain")),
            datetime: time::OffsetDateTime = required(datetime()),
            id: MaybeId<uuid::Uuid> = required(id().example("1")),
            uuid: uuid::Uuid = required(uuid()),
            integer: i64 = or(1, integer(-1..=5)),
            unsigned: u32 = or(1, unsigned(1..=5)),
            float: f64 = or(1, float()),
            boolean: bool = or(false, boolean()),
            choice: u8 = or("a", choice([("a", 1), ("b", 2)])),
            list: Vec<String> = or(json!([]), list(text(..)).of(1..=9)),
            map: Option<Vec<(String, f64)>> = optional(map_of(float())),
            object: serde_json::Map<String, Value> = required(object()),
            any: Option<Value> = optional(any()),
            nested: Option<Nested> = optional(shape::<Nested>()),
        }
    }

    shape! {
        struct Nested {
            number: serde_json::Number = required(number()),
        }
    }

    #[test]
    fn no_keyword_of_a_schema_is_lost() {
        let mut definitions = Definitions::new(SCHEMAS);
        definitions.reference::<EveryReader>();
        let neutral = serde_json::to_value(definitions.clone().into_schemas()).unwrap();
        let converted: serde_json::Map<String, Value> = components(definitions)
            .map(|(name, schema)| (name, serde_json::to_value(schema).unwrap()))
            .collect();
        assert_eq!(
            neutral["EveryReader"]["required"].as_array().unwrap().len(),
            5
        );
        assert_eq!(Value::Object(converted), neutral);
    }
}
