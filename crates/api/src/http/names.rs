//! Schemas of texts that are one of a few names.

use utoipa::openapi::{ObjectBuilder, RefOr, Schema, schema::Type};

/// Declares schemas of fields whose value is one of the names of a domain type:
/// `#[schema(value_type = FileSourceType)] source_type: &'static str`.
///
/// ```
/// labdata_api::names! {
///     /// Color of a label.
///     pub LabelColor = ["red", "green"];
/// }
/// ```
#[macro_export]
macro_rules! names {
    ($($(#[doc = $doc:literal])+ $vis:vis $name:ident = $names:expr;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        $vis enum $name {}

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $crate::http::names::schema(concat!($($doc),+), $names)
            }
        }

        impl utoipa::ToSchema for $name {}
    )+};
}

/// Returns the schema of a text that is one of the names.
#[doc(hidden)]
pub fn schema(description: &str, names: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description.trim()))
        .enum_values(Some(names))
        .into()
}
