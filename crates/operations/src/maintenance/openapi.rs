//! `GET /api/v1/openapi.json`

use serde_json::Value;

use crate::{About, AnyScope, Method, NoBody, Operation, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "openapi",
        method: Method::Get,
        path: "/api/v1/openapi.json",
        tag: Tag::Operations,
        summary: "This API, described",
        description: "OpenAPI 3.1, made of the endpoints of this server. No API key is needed.",
        returns: "The OpenAPI document",
        refusals: &[],
    }
    .served_by_hand::<AnyScope, NoBody, (), (), Value>()
    .open()
}
