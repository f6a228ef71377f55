//! Tables that are sent while they are read.

use std::{future::pending, time::Duration};

use async_trait::async_trait;
use labdata_application::{Error, data::export_table::export_table, slots::Work};
use labdata_domain::{data::read::TablePart, people::scope::Scope, refusal::ErrorCode};
use labdata_ports::data::{parts::PartSink, query::SinkClosed};

use crate::lab::Lab;

/// A client that reads nothing.
struct Unread;

#[async_trait]
impl PartSink for Unread {
    async fn part(&mut self, _: TablePart) -> Result<(), SinkClosed> {
        pending().await
    }

    async fn end(&mut self) -> Result<(), SinkClosed> {
        pending().await
    }
}

#[tokio::test]
async fn an_export_ends_after_its_total_time_and_frees_its_slots() {
    let mut lab = Lab::new().await;
    lab.services.export_time = Duration::from_millis(10);
    let actor = lab.actor(&[Scope::Read]);
    for _ in 0..2 {
        let export = export_table(&lab.services, &actor, "experiment", None).await;
        let sent = export.unwrap().send(&lab.services, Box::new(Unread)).await;
        let Err(Error::Refused(refusal)) = sent else {
            panic!("{sent:?}");
        };
        assert_eq!(refusal.code, ErrorCode::TimedOut);
        assert!(refusal.message.contains("LABDATA_EXPORT_SECONDS"));
    }
    for _ in 0..2 {
        let slot = lab.services.slots.enter(Work::Stream, &actor);
        slot.await.unwrap();
    }
}
