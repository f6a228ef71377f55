//! The code of an error body.

use labdata_domain::refusal::ErrorCode;
use serde::{Serialize, Serializer};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type},
};

/// A code as JSON. OpenAPI lists all codes.
#[derive(Clone, Copy, Debug)]
pub struct ErrorCodeView(pub ErrorCode);

impl Serialize for ErrorCodeView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl PartialSchema for ErrorCodeView {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(
                "Stable word that says why a request failed. Messages may change, codes do not.",
            ))
            .enum_values(Some(ErrorCode::ALL.iter().map(|code| code.as_str())))
            .into()
    }
}

impl ToSchema for ErrorCodeView {
    fn name() -> std::borrow::Cow<'static, str> {
        "ErrorCode".into()
    }
}
