//! `POST /api/v1/session`

use labdata_request_body::{ProblemKind, fields::optional, readers::text, shape};
use serde_json::json;

use crate::people::me::MeView;

use crate::{About, AnyScope, JsonBody, Method, Operation, Tag};

shape! {
    /// Credential of a sign-in: an API key or the token of a link.
    #[derive(Clone)]
    pub struct SessionBody {
        /// An API key. The session has its user and scopes, and ends with it.
        pub api_key: Option<String> = optional(text(..)),
        /// The token of a link that `labdata sign-in` printed; good once, for 30 minutes.
        pub token: Option<String> = optional(text(..)),
    }
    example json!({"api_key": "ldk_k3v9q2mx_…"});
    rules |at| {
        match (api_key, token) {
            (Some(None), Some(None)) => at.field("api_key").report(ProblemKind::missing()),
            (Some(Some(_)), Some(Some(_))) => {
                at.field("token").report(ProblemKind::value_error("not together with api_key"));
            }
            _ => {}
        }
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "begin_session",
        method: Method::Post,
        path: "/api/v1/session",
        tag: Tag::Session,
        summary: "Signs in",
        description: "The response sets the cookie `labdata-session` (`__Host-labdata-session` by TLS), \
            which is accepted wherever an API key is. Changes that come with it need \
            `Sec-Fetch-Site: same-origin` or `none`, or where that header is missing the \
            platform's own `Origin`. The session ends with its key, after 12 h without use, or \
            after 7 days. `Idempotency-Key` is refused, because the cookie would have to be \
            stored.",
        returns: "Organization, user and key of the session",
        refusals: &[
            (400, "The request bears an Idempotency-Key"),
            (401, "The key or the link is unknown, used, revoked or expired"),
            (403, "The key of a run on the platform opens no session"),
        ],
    }
    .served_by_hand::<AnyScope, JsonBody<SessionBody>, (), (), MeView>()
    .open()
    .with_response_headers(&[("Set-Cookie", "The session")])
}
