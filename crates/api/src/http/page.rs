//! `limit` and `cursor`, which every list takes.

use labdata_domain::page::{DEFAULT_LIMIT, MAX_LIMIT, PageRequest};
use serde_json::Value;
use utoipa::{
    IntoParams, PartialSchema,
    openapi::{
        ObjectBuilder, Required,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::Type,
    },
};

use super::shape::{
    Fields, Place, Shape,
    readers::{cursor, unsigned},
};

/// The query string of a list without filters. Lists with filters read it from their own fields
/// by [`PageQuery::from_fields`], and document it beside their own: `params(ListJobsQuery,
/// PageQuery)`.
#[derive(Clone, Copy, Debug)]
pub struct PageQuery(pub PageRequest);

impl PageQuery {
    /// Takes `limit` and `cursor`; `default_limit` where no limit is given, `None` for all.
    pub fn from_fields(fields: &mut Fields<'_>, default_limit: Option<u32>) -> Option<PageRequest> {
        let limit = fields.nullable("limit", unsigned(1..=MAX_LIMIT));
        let after = fields.nullable("cursor", cursor());
        Some(PageRequest {
            limit: limit?.or(default_limit),
            after: after?,
        })
    }
}

impl Shape for PageQuery {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        Self::from_fields(&mut Fields::of(value, place)?, Some(DEFAULT_LIMIT)).map(Self)
    }
}

impl IntoParams for PageQuery {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let limit = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(MAX_LIMIT));
        vec![
            ParameterBuilder::new()
                .name("limit")
                .parameter_in(ParameterIn::Query)
                .required(Required::False)
                .description(Some(format!("Maximum number of items, 1 to {MAX_LIMIT}")))
                .schema(Some(limit))
                .build(),
            ParameterBuilder::new()
                .name("cursor")
                .parameter_in(ParameterIn::Query)
                .required(Required::False)
                .description(Some(
                    "Where the page starts: from the previous page's `Link` header",
                ))
                .schema(Some(String::schema()))
                .build(),
        ]
    }
}
