//! The `OpenAPI` document of operations.

mod headers;
mod responses;
mod schemas;

use labdata_request_body::{Definitions, Property, Schema};
use serde_json::{Map, Value, json};

use crate::{Access, BodyDescription, Idempotency, MAX_KEY_LENGTH, Operation, Tag};

/// The prefix of references to schemas.
pub const SCHEMAS: &str = "#/components/schemas/";

/// The security scheme's name.
const BEARER: &str = "bearer";

const DESCRIPTION: &str = "Files, jobs and their executions, and transactional data writes of a \
    laboratory. Everything belongs to the organization of the API key. See docs/API.md for errors \
    and paging.";

/// Returns the document of these operations.
#[must_use]
pub fn document(operations: &[Operation]) -> Value {
    let mut inputs = Definitions::new(SCHEMAS);
    let mut outputs = Definitions::new(SCHEMAS);
    let mut paths = Map::new();
    for operation in operations {
        let described = describe(operation, &mut inputs, &mut outputs);
        let path = paths.entry(operation.about.path).or_insert(json!({}));
        if let Value::Object(methods) = path {
            let method = operation.about.method.as_str().to_ascii_lowercase();
            methods.insert(method, described);
        }
    }
    let mut inputs = inputs.into_schemas();
    inputs.values_mut().for_each(schemas::adapt_to_clients);
    inputs.extend(outputs.into_schemas());
    let tags = Tag::ALL
        .iter()
        .map(|tag| json!({ "name": tag.as_str(), "description": tag.description() }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lab Data Platform API",
            "version": "1.0.0",
            "description": DESCRIPTION,
        },
        "servers": [{ "url": "/", "description": "This installation" }],
        "tags": tags.collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": inputs,
            "headers": headers::components(),
            "securitySchemes": {
                BEARER: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key of the platform: `ldk_<prefix>_<secret>`",
                },
            },
        },
    })
}

fn describe(operation: &Operation, inputs: &mut Definitions, outputs: &mut Definitions) -> Value {
    let about = &operation.about;
    let request = (operation.describe_request)(inputs);
    let responses = responses::all(operation, &request, outputs);
    let mut parameters = Vec::new();
    parameters.extend(request.path.into_iter().map(|it| parameter("path", it)));
    parameters.extend(request.query.into_iter().map(|it| parameter("query", it)));
    parameters.extend(operation.request_headers.iter().map(|it| {
        let schema = Schema::of("string").with("pattern", it.pattern);
        header(it.name, it.description, schema)
    }));
    if operation.idempotency == Idempotency::ByKey {
        parameters.push(idempotency_key());
    }
    let mut described = Map::from_iter([
        ("tags".to_owned(), json!([about.tag.as_str()])),
        ("summary".to_owned(), about.summary.into()),
        ("operationId".to_owned(), about.name.into()),
        ("responses".to_owned(), responses),
    ]);
    let mut add = |name: &str, value: Value| described.insert(name.to_owned(), value);
    if !about.description.is_empty() {
        add("description", about.description.into());
    }
    if !parameters.is_empty() {
        add("parameters", parameters.into());
    }
    if let Some(body) = request.body {
        add("requestBody", request_body(body, request.other_body));
    }
    match operation.access {
        Access::Open => {}
        Access::AnyKey => _ = add("security", json!([{ BEARER: [] }])),
        Access::Scope(scope) => _ = add("security", json!([{ BEARER: [scope.as_str()] }])),
    }
    described.into()
}

fn parameter(place: &str, property: Property) -> Value {
    json!({
        "name": property.name,
        "in": place,
        "required": property.is_required,
        "description": property.description,
        "schema": Value::from(property.as_parameter()),
    })
}

fn header(name: &str, description: &str, schema: Schema) -> Value {
    json!({
        "name": name,
        "in": "header",
        "required": false,
        "description": description,
        "schema": Value::from(schema),
    })
}

fn idempotency_key() -> Value {
    let schema = Schema::of("string")
        .with("minLength", 1)
        .with("maxLength", MAX_KEY_LENGTH)
        .with("pattern", r"^[!-~]([\t -~]*[!-~])?$");
    let description = "Names the request, 1 to 255 ASCII characters of the client's choice. Sent again \
        within 24 hours it has no second effect: the first response is returned, with \
        `Idempotent-Replayed: true`. Another body under the same key is refused with 422. Responses of 4xx \
        and 5xx are not stored.";
    header("Idempotency-Key", description, schema)
}

fn request_body(body: BodyDescription, other: Option<BodyDescription>) -> Value {
    let is_required = body.is_required;
    let contents = [Some(body), other].into_iter().flatten().map(|body| {
        let mut content = json!({ "schema": Value::from(body.schema) });
        if let (Some(example), Value::Object(content)) = (body.example, &mut content) {
            content.insert("example".to_owned(), example);
        }
        (body.content_type.to_owned(), content)
    });
    let contents: Map<String, Value> = contents.collect();
    json!({ "required": is_required, "content": contents })
}
