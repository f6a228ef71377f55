//! Parameters, body and schemas of an operation in the OpenAPI document.

use labdata_operations::BodyDescription;
use labdata_request_body::{Definitions, Shape};
use serde_json::Value;
use utoipa::openapi::{
    ContentBuilder, RefOr, Required, Schema,
    path::{Parameter, ParameterBuilder, ParameterIn},
    request_body::{RequestBody, RequestBodyBuilder},
};

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
        .example(body.example)
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

#[cfg(test)]
mod tests {
    use labdata_request_body::{
        fields::{optional, or, required},
        readers::*,
        shape,
    };
    use serde_json::json;

    use labdata_operations::SCHEMAS;

    use super::{Definitions, Value, components};

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
