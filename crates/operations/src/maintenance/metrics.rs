//! `GET /metrics`

use crate::{About, AnyScope, Method, NoBody, Operation, PlainText, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "metrics",
        method: Method::Get,
        path: "/metrics",
        tag: Tag::Operations,
        summary: "Metrics for Prometheus",
        description: "Requests, runs, queues, outboxes, background tasks, database connections and tokens of \
            the agent, in Prometheus' text format. No API key is needed.",
        returns: "Prometheus' text format",
        refusals: &[],
    }
    .served_by_hand::<AnyScope, NoBody, (), (), PlainText>()
    .open()
}
