//! Contract of [`InstrumentRepository`]. [`crate::instruments::changes`] covers changes and deletion.

pub mod changes;

use futures::future::join_all;
use labdata_domain::{
    ids::{InstrumentId, OrganizationId},
    instruments::Instrument,
};
use labdata_ports::instruments::InstrumentRepository;

use crate::{
    Subject,
    assertions::{assert_conflict_is, assert_not_found, assert_one_winner},
    fixtures::Tenants,
    given::{self, at},
    paging::{ALL, first, read_to_the_end},
};

/// Makes one test of each clause of [`crate::instruments`].
#[macro_export]
macro_rules! instruments_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, instruments in instruments:
            an_instrument_reads_back_as_it_was_added,
            an_unknown_instrument_is_not_found,
            an_instrument_of_another_organization_is_not_found,
            a_name_that_is_taken_conflicts,
            another_organization_may_use_the_name,
            of_racing_instruments_with_one_name_one_is_added,
            the_list_is_newest_first_and_total,
            a_full_last_page_has_no_next,
            pages_lose_and_repeat_nothing_while_others_insert,
            the_list_shows_no_other_organization,
        }
        $crate::clauses! { [$($test)?] $harness, instrument_changes in instruments::changes:
            a_change_keeps_the_fields_that_it_does_not_name,
            a_change_to_a_name_that_is_taken_conflicts,
            an_instrument_keeps_its_own_name,
            racing_changes_of_different_fields_all_take_effect,
            only_its_own_organization_changes_an_instrument,
            a_deleted_instrument_is_gone_and_its_name_free,
            an_instrument_with_files_is_not_deleted,
            an_instrument_of_a_trigger_is_not_deleted,
            of_a_file_and_a_deletion_one_comes_first,
            only_its_own_organization_deletes_an_instrument,
        }
    };
}

/// Adds instruments that were created at these seconds, and returns them newest first.
async fn stored(
    instruments: &dyn InstrumentRepository,
    organization: OrganizationId,
    seconds: &[i64],
) -> Vec<Instrument> {
    let mut added = Vec::new();
    for (number, seconds) in seconds.iter().enumerate() {
        let instrument = given::instrument(&format!("reader {number}"), at(*seconds));
        instruments.add(organization, &instrument).await.unwrap();
        added.push(instrument);
    }
    added.sort_by_key(|instrument| std::cmp::Reverse((instrument.created_at, instrument.id)));
    added
}

/// Every field is stored, with and without the optional ones, times to the microsecond.
pub async fn an_instrument_reads_back_as_it_was_added<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let lab = harness.organization("lab").await.id;
    let instruments = harness.subject();
    let full = given::instrument("Gen5 \"Süd\" – 2", at(0));
    let bare = Instrument {
        description: None,
        instrument_type: None,
        ..given::instrument("bare", at(1))
    };
    for instrument in [full, bare] {
        instruments.add(lab, &instrument).await.unwrap();
        assert_eq!(
            instruments.get(lab, instrument.id).await.unwrap(),
            instrument
        );
    }
}

/// An id that no instrument has is not found.
pub async fn an_unknown_instrument_is_not_found<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let lab = harness.organization("lab").await.id;
    let unknown = InstrumentId::new(given::uuid());
    assert_not_found(harness.subject().get(lab, unknown).await);
}

/// Another organization's instrument is answered like one that does not exist.
pub async fn an_instrument_of_another_organization_is_not_found<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let instruments = harness.subject();
    let instrument = given::instrument("reader", at(0));
    instruments.add(theirs, &instrument).await.unwrap();
    assert_not_found(instruments.get(ours, instrument.id).await);
}

/// A used name is a conflict, and the existing instrument is unchanged.
pub async fn a_name_that_is_taken_conflicts<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let lab = harness.organization("lab").await.id;
    let instruments = harness.subject();
    let instrument = given::instrument("reader", at(0));
    instruments.add(lab, &instrument).await.unwrap();
    assert_conflict_is(
        instruments
            .add(lab, &given::instrument("reader", at(1)))
            .await,
        &instrument.name_taken(),
    );
    assert_eq!(
        instruments.list(lab, ALL).await.unwrap().items,
        [instrument]
    );
}

/// Names are unique within an organization only.
pub async fn another_organization_may_use_the_name<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let instruments = harness.subject();
    instruments
        .add(ours, &given::instrument("reader", at(0)))
        .await
        .unwrap();
    instruments
        .add(theirs, &given::instrument("reader", at(0)))
        .await
        .unwrap();
}

/// Of instruments added concurrently under one name, exactly one is stored; the rest conflict.
pub async fn of_racing_instruments_with_one_name_one_is_added<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let lab = harness.organization("lab").await.id;
    let instruments = harness.subject();
    let candidates: Vec<Instrument> = (0..6).map(|_| given::instrument("reader", at(0))).collect();
    let results = join_all(
        candidates
            .iter()
            .map(|candidate| instruments.add(lab, candidate)),
    )
    .await;
    assert_one_winner(results);
    assert_eq!(instruments.list(lab, ALL).await.unwrap().items.len(), 1);
}

/// The list is ordered by creation time, then id, newest first, with any page size.
pub async fn the_list_is_newest_first_and_total<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let lab = harness.organization("lab").await.id;
    let instruments = harness.subject();
    let expected = stored(&*instruments, lab, &[20, 10, 30, 10, 20, 10, 10]).await;
    assert_eq!(instruments.list(lab, ALL).await.unwrap().items, expected);
    for limit in [1, 2, 3, 100] {
        let items = read_to_the_end(limit, async |_, page| instruments.list(lab, page).await).await;
        assert_eq!(items, expected, "in pages of {limit}");
    }
}

/// A page has a cursor only if more items follow, not because it is full.
pub async fn a_full_last_page_has_no_next<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let lab = harness.organization("lab").await.id;
    let instruments = harness.subject();
    assert_eq!(instruments.list(lab, first(3)).await.unwrap().next, None);
    stored(&*instruments, lab, &[1, 2, 3]).await;
    assert_eq!(instruments.list(lab, first(3)).await.unwrap().next, None);
    assert!(
        instruments
            .list(lab, first(2))
            .await
            .unwrap()
            .next
            .is_some()
    );
    assert_eq!(instruments.list(lab, ALL).await.unwrap().next, None);
}

/// Items that exist when paging begins are read exactly once, while newer ones are added.
pub async fn pages_lose_and_repeat_nothing_while_others_insert<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let lab = harness.organization("lab").await.id;
    let instruments = harness.subject();
    let expected = stored(&*instruments, lab, &[1, 2, 2, 2, 3, 4, 5]).await;
    let items = read_to_the_end(2, async |number, request| {
        let page = instruments.list(lab, request).await?;
        instruments
            .add(lab, &given::instrument(&format!("new {number}"), at(60)))
            .await?;
        Ok(page)
    })
    .await;
    assert_eq!(items, expected);
}

/// An organization's list has no instruments of another, and no cursor leads to them.
pub async fn the_list_shows_no_other_organization<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let instruments = harness.subject();
    let expected = stored(&*instruments, ours, &[1, 3, 5]).await;
    stored(&*instruments, theirs, &[2, 4, 6]).await;
    let items = read_to_the_end(1, async |_, page| instruments.list(ours, page).await).await;
    assert_eq!(items, expected);
}
