//! `GET /readyz`

use labdata_request_body::{names, output};

use crate::{About, AnyScope, Method, NoBody, Operation, Tag};

names! {
    /// Status of a server that is ready.
    pub ReadinessStatus = ["ready"];
}

output! {
    /// The server is ready.
    #[derive(Clone, Copy, Debug)]
    pub struct ReadyView as "Readiness" {
        /// Always `ready`.
        status: ReadinessStatus,
    }
}

impl ReadyView {
    /// The response of a server that is ready.
    #[must_use]
    pub fn ready() -> Self {
        Self {
            status: "ready".into(),
        }
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "ready",
        method: Method::Get,
        path: "/readyz",
        tag: Tag::Operations,
        summary: "Checks that the database and the storage respond",
        description: "For readiness probes and load balancers. No API key is needed.",
        returns: "They do",
        refusals: &[(503, "One does not; the detail says which")],
    }
    .served_by_hand::<AnyScope, NoBody, (), (), ReadyView>()
    .open()
}
