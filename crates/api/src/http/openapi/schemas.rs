//! Corrections of the schemas that are derived from the types of responses.

use serde_json::{Map, Value};
use utoipa::openapi::{
    Content, KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat,
    path::Operation,
    schema::{AdditionalProperties, ArrayItems, Object, SchemaType, Type},
};

/// Calls `change` with every object schema within a schema, and with itself.
fn for_each_object(schema: &mut RefOr<Schema>, change: fn(&mut Object)) {
    let RefOr::T(schema) = schema else {
        return;
    };
    let each = |items: &mut Vec<RefOr<Schema>>| {
        for item in items {
            for_each_object(item, change);
        }
    };
    match schema {
        Schema::Object(object) => {
            for property in object.properties.values_mut() {
                for_each_object(property, change);
            }
            if let Some(AdditionalProperties::RefOr(values)) =
                object.additional_properties.as_deref_mut()
            {
                for_each_object(values, change);
            }
            change(object);
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                for_each_object(items, change);
            }
        }
        Schema::OneOf(one) => each(&mut one.items),
        Schema::AllOf(all) => each(&mut all.items),
        Schema::AnyOf(any) => each(&mut any.items),
        _ => {}
    }
}

/// Marks the fields of a response that are always present as required, null or not.
///
/// A derived schema leaves every `Option` optional, but serde writes `null` for `None`. A field that is
/// left out instead (`skip_serializing_if`) is never null, and says so with
/// `#[schema(nullable = false)]`.
pub(super) fn require_always_present(schema: &mut RefOr<Schema>) {
    for_each_object(schema, |object| {
        for (name, property) in &object.properties {
            if is_nullable(property) && !object.required.contains(name) {
                object.required.push(name.clone());
            }
        }
    });
}

/// Regular expression of texts without NUL, the only ones that PostgreSQL can store.
const TEXT_PATTERN: &str = r"^[^\u0000]*$";

/// Number of characters of a UUID with hyphens. Tools do not check `format` everywhere.
const UUID_LENGTH: usize = 36;

/// Bounds the texts of a request body whose readers state no syntax.
pub(super) fn bound_texts(schema: &mut RefOr<Schema>) {
    for_each_object(schema, |object| {
        if !allows(&object.schema_type, &Type::String) || object.enum_values.is_some() {
            return;
        }
        match &object.format {
            None if object.pattern.is_none() => object.pattern = Some(TEXT_PATTERN.to_owned()),
            Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)) => {
                object.min_length = Some(UUID_LENGTH);
                object.max_length = Some(UUID_LENGTH);
            }
            _ => {}
        }
    });
}

/// Lets objects without declared fields hold any field. openapi-typescript takes them to be
/// empty otherwise.
pub(super) fn open_objects(schema: &mut RefOr<Schema>) {
    for_each_object(schema, |object| {
        if allows(&object.schema_type, &Type::Object)
            && object.properties.is_empty()
            && object.additional_properties.is_none()
        {
            object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(true)));
        }
    });
}

/// Calls [`open_objects`] with the schemas that an operation holds itself.
pub(super) fn open_inline_objects(operation: &mut Operation) {
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        body.content.values_mut().for_each(open_content);
    }
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            response.content.values_mut().for_each(open_content);
        }
    }
}

fn open_content(content: &mut RefOr<Content>) {
    if let RefOr::T(content) = content
        && let Some(schema) = &mut content.schema
    {
        open_objects(schema);
    }
}

/// Writes schemas of requests in the way that generators of clients understand: any value has no
/// `type`, rather than a list of all types, and an empty object is no default.
pub(super) fn simplify(schema: &mut RefOr<Schema>) {
    for_each_object(schema, |object| {
        if let SchemaType::Array(types) = &object.schema_type
            && types.contains(&Type::Array)
            && types.contains(&Type::Object)
        {
            object.schema_type = SchemaType::AnyValue;
        }
        if object.default == Some(Value::Object(Map::new())) {
            object.default = None;
        }
    });
}

fn is_nullable(schema: &RefOr<Schema>) -> bool {
    let RefOr::T(schema) = schema else {
        return false;
    };
    match schema {
        Schema::Object(object) => allows(&object.schema_type, &Type::Null),
        Schema::Array(array) => allows(&array.schema_type, &Type::Null),
        Schema::OneOf(one) => one.items.iter().any(is_nullable),
        Schema::AnyOf(any) => any.items.iter().any(is_nullable),
        _ => false,
    }
}

fn allows(schema_type: &SchemaType, sought: &Type) -> bool {
    match schema_type {
        SchemaType::Type(one) => one == sought,
        SchemaType::Array(types) => types.contains(sought),
        SchemaType::AnyValue => *sought == Type::Null,
    }
}

/// Describes the responses that are bytes rather than text or JSON as such.
pub(super) fn describe_binary(operation: &mut Operation) {
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(response) = response else {
            continue;
        };
        for (media_type, content) in &mut response.content {
            if is_binary(media_type) {
                *content = Content::new(Some(bytes())).into();
            }
        }
    }
}

fn is_binary(media_type: &str) -> bool {
    !(media_type.starts_with("text/")
        || media_type == "application/json"
        || media_type.ends_with("+json"))
}

fn bytes() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
        .build()
}
