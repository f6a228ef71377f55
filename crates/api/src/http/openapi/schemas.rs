//! Corrections of the schemas that are derived from the types of answers.

use utoipa::openapi::{
    Content, KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat,
    path::Operation,
    schema::{AdditionalProperties, ArrayItems, Object, SchemaType, Type},
};

/// Marks the fields of an answer that are always present as required, null or not.
///
/// A derived schema leaves every `Option` optional, but serde writes `null` for `None`. A field that is
/// left out instead (`skip_serializing_if`) is never null, and says so with
/// `#[schema(nullable = false)]`.
pub(super) fn require_always_present(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else {
        return;
    };
    match schema {
        Schema::Object(object) => require_in_object(object),
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                require_always_present(items);
            }
        }
        Schema::OneOf(one) => one.items.iter_mut().for_each(require_always_present),
        Schema::AllOf(all) => all.items.iter_mut().for_each(require_always_present),
        Schema::AnyOf(any) => any.items.iter_mut().for_each(require_always_present),
        _ => {}
    }
}

fn require_in_object(object: &mut Object) {
    for (name, property) in &mut object.properties {
        require_always_present(property);
        if is_nullable(property) && !object.required.contains(name) {
            object.required.push(name.clone());
        }
    }
    if let Some(AdditionalProperties::RefOr(values)) = object.additional_properties.as_deref_mut() {
        require_always_present(values);
    }
}

fn is_nullable(schema: &RefOr<Schema>) -> bool {
    let RefOr::T(schema) = schema else {
        return false;
    };
    match schema {
        Schema::Object(object) => allows_null(&object.schema_type),
        Schema::Array(array) => allows_null(&array.schema_type),
        Schema::OneOf(one) => one.items.iter().any(is_nullable),
        Schema::AnyOf(any) => any.items.iter().any(is_nullable),
        _ => false,
    }
}

fn allows_null(schema_type: &SchemaType) -> bool {
    match schema_type {
        SchemaType::Type(one) => *one == Type::Null,
        SchemaType::Array(types) => types.contains(&Type::Null),
        SchemaType::AnyValue => true,
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
