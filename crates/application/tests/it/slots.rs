//! Limits of concurrent work, which callers of every kind share.

use std::time::Duration;

use labdata_application::{
    Error,
    data::read_series::{ReadSeries, read_series},
    files::preview_table::{PreviewSource, preview_table},
    slots::Work,
};
use labdata_domain::{
    ids::FileId,
    people::scope::Scope,
    refusal::{Refusal, RefusalKind},
};
use labdata_table_formats::read::ReadOptions;
use tokio::time::timeout;

use crate::lab::Lab;

/// Time in which a use case that needs not wait would have ended.
const MOMENT: Duration = Duration::from_millis(50);

fn is_not_found<T>(outcome: &Result<T, Error>) -> bool {
    matches!(
        outcome,
        Err(Error::Refused(Refusal {
            kind: RefusalKind::NotFound,
            ..
        }))
    )
}

#[tokio::test]
async fn a_table_of_a_file_waits_for_a_slot_of_the_organization() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Read]);
    let slots = &lab.ports.slots;
    let first = slots.enter(Work::ParsedTable, actor.organization).await;
    let second = slots.enter(Work::ParsedTable, actor.organization).await;
    let unknown = FileId::new(lab.ports.ids.next_id());
    let read = || {
        let source = PreviewSource::File(unknown);
        preview_table(&lab.ports, &actor, source, ReadOptions::default(), 1)
    };
    assert!(timeout(MOMENT, read()).await.is_err(), "it did not wait");
    drop((first, second));
    let refused = read().await;
    assert!(is_not_found(&refused), "{refused:?}");
}

#[tokio::test]
async fn a_series_waits_until_the_results_before_it_are_dropped() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Read]);
    let mut results = Vec::new();
    for _ in 0..4 {
        let slot = lab.ports.slots.enter(Work::Result, actor.organization);
        results.push(slot.await.unwrap());
    }
    let query = ReadSeries {
        table: "curve".to_owned(),
        parent_column: None,
        parent: "a".to_owned(),
    };
    let read = || read_series(&lab.ports, &actor, query.clone());
    assert!(timeout(MOMENT, read()).await.is_err(), "it did not wait");
    results.pop();
    let refused = read().await;
    assert!(is_not_found(&refused), "{refused:?}");
}
