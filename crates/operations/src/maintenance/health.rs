//! `GET /healthz`

use labdata_request_body::{names, output};

use crate::{About, AnyScope, Method, NoBody, Operation, Tag};

names! {
    /// Status of a process that runs.
    pub HealthStatus = ["ok"];
}

output! {
    /// The process runs.
    #[derive(Clone, Copy, Debug)]
    pub struct HealthView as "Health" {
        /// Always `ok`.
        status: HealthStatus,
    }
}

impl HealthView {
    /// The response of a process that runs.
    #[must_use]
    pub fn ok() -> Self {
        Self {
            status: "ok".into(),
        }
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "health",
        method: Method::Get,
        path: "/healthz",
        tag: Tag::Operations,
        summary: "Responds while the process runs",
        description: "For liveness probes. No API key is needed.",
        returns: "It does",
        refusals: &[],
    }
    .served_by_hand::<AnyScope, NoBody, (), (), HealthView>()
    .open()
}
