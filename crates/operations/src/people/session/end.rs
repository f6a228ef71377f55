//! `DELETE /api/v1/session`

use crate::{About, AnyScope, Method, NoBody, NoContent, Operation, Tag};
pub(super) fn operation() -> Operation {
    About {
        name: "end_session",
        method: Method::Delete,
        path: "/api/v1/session",
        tag: Tag::Session,
        summary: "Signs out",
        description: "Ends the session of the cookie: at once on the server that is asked, within 5 s on \
            every other. A request with an API key has no session to end.",
        returns: "It has ended",
        refusals: &[
            (403, "The cookie came with a request from a page of another site"),
        ],
    }
    .served_by_hand::<AnyScope, NoBody, (), (), NoContent>()
}
