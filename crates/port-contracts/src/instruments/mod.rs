//! Contract of [`InstrumentRepository`](labdata_ports::instruments::InstrumentRepository). [`crate::instruments::changes`] covers changes and deletion.

pub mod annotations;
pub mod changes;
pub mod devices;

use futures::future::join_all;
use labdata_domain::{
    ids::{InstrumentId, OrganizationId},
    instruments::Instrument,
};
use labdata_ports::{PortError, files::FileRepository};

use crate::{
    assertions::{assert_conflict_is, assert_not_found, assert_one_winner},
    given::{self, at},
    lab::lab,
    paging::{ALL, assert_pages, first, read_to_the_end},
};

lab!(
    /// Instruments of two organizations, and their files.
    pub struct InstrumentsLab {
        /// Files of instruments.
        pub files: dyn FileRepository,
    }
);

impl InstrumentsLab {
    async fn add(&self, instrument: &Instrument) -> Result<(), PortError> {
        self.instruments.add(self.ours, instrument).await
    }

    async fn get(&self, id: InstrumentId) -> Result<Instrument, PortError> {
        self.instruments.get(self.ours, id).await
    }

    async fn list(&self) -> Vec<Instrument> {
        self.instruments.list(self.ours, ALL).await.unwrap().items
    }

    /// Adds instruments that were created at these seconds, and returns them newest first.
    async fn stored(&self, organization: OrganizationId, seconds: &[i64]) -> Vec<Instrument> {
        let mut added = Vec::new();
        for (number, seconds) in seconds.iter().enumerate() {
            let instrument = given::instrument(&format!("reader {number}"), at(*seconds));
            self.instruments
                .add(organization, &instrument)
                .await
                .unwrap();
            added.push(instrument);
        }
        added.sort_by_key(|instrument| std::cmp::Reverse((instrument.created_at, instrument.id)));
        added
    }
}

crate::suite!(
    use instruments;

    /// Every field is stored, with and without the optional ones, times to the microsecond.
    async fn an_instrument_reads_back_as_it_was_added(lab: &InstrumentsLab) {
        let full = given::instrument("Gen5 \"Süd\" – 2", at(0));
        let bare = Instrument {
            description: None,
            instrument_type: None,
            reader: None,
            timezone: None,
            last_reader: None,
            ..given::instrument("bare", at(1))
        };
        for instrument in [full, bare] {
            lab.add(&instrument).await.unwrap();
            assert_eq!(lab.get(instrument.id).await.unwrap(), instrument);
        }
    }

    /// An id that no instrument has is not found.
    async fn an_unknown_instrument_is_not_found(lab: &InstrumentsLab) {
        let unknown = InstrumentId::new(given::uuid());
        assert_not_found(lab.get(unknown).await);
    }

    /// Another organization's instrument is answered like one that does not exist.
    async fn an_instrument_of_another_organization_is_not_found(lab: &InstrumentsLab) {
        let instrument = given::instrument("reader", at(0));
        lab.instruments.add(lab.theirs, &instrument).await.unwrap();
        assert_not_found(lab.get(instrument.id).await);
    }

    /// A used name is a conflict, and the existing instrument is unchanged.
    async fn a_name_that_is_taken_conflicts(lab: &InstrumentsLab) {
        let instrument = given::instrument("reader", at(0));
        lab.add(&instrument).await.unwrap();
        assert_conflict_is(
            lab.add(&given::instrument("reader", at(1))).await,
            &instrument.name_taken(),
        );
        assert_eq!(lab.list().await, [instrument]);
    }

    /// Names are unique within an organization only.
    async fn another_organization_may_use_the_name(lab: &InstrumentsLab) {
        lab.add(&given::instrument("reader", at(0))).await.unwrap();
        lab.instruments
            .add(lab.theirs, &given::instrument("reader", at(0)))
            .await
            .unwrap();
    }

    /// Of instruments added concurrently under one name, exactly one is stored; the rest conflict.
    async fn of_racing_instruments_with_one_name_one_is_added(lab: &InstrumentsLab) {
        let candidates: Vec<Instrument> =
            (0..6).map(|_| given::instrument("reader", at(0))).collect();
        let results = join_all(candidates.iter().map(|candidate| lab.add(candidate))).await;
        assert_one_winner(results);
        assert_eq!(lab.list().await.len(), 1);
    }

    /// The list is ordered by creation time, then id, newest first, with any page size.
    async fn the_list_is_newest_first_and_total(lab: &InstrumentsLab) {
        let expected = lab.stored(lab.ours, &[20, 10, 30, 10, 20, 10, 10]).await;
        assert_eq!(lab.list().await, expected);
        let read = async |page| lab.instruments.list(lab.ours, page).await;
        assert_pages([1, 2, 3, 100], &expected, read).await;
    }

    /// A page has a cursor only if more items follow, not because it is full.
    async fn a_full_last_page_has_no_next(lab: &InstrumentsLab) {
        assert_eq!(
            lab.instruments.list(lab.ours, first(3)).await.unwrap().next,
            None
        );
        lab.stored(lab.ours, &[1, 2, 3]).await;
        assert_eq!(
            lab.instruments.list(lab.ours, first(3)).await.unwrap().next,
            None
        );
        assert!(
            lab.instruments
                .list(lab.ours, first(2))
                .await
                .unwrap()
                .next
                .is_some()
        );
        assert_eq!(
            lab.instruments.list(lab.ours, ALL).await.unwrap().next,
            None
        );
    }

    /// Items that exist when paging begins are read exactly once, while newer ones are added.
    async fn pages_lose_and_repeat_nothing_while_others_insert(lab: &InstrumentsLab) {
        let expected = lab.stored(lab.ours, &[1, 2, 2, 2, 3, 4, 5]).await;
        let items = read_to_the_end(2, async |number, request| {
            let page = lab.instruments.list(lab.ours, request).await?;
            lab.add(&given::instrument(&format!("new {number}"), at(60)))
                .await?;
            Ok(page)
        })
        .await;
        assert_eq!(items, expected);
    }

    /// An organization's list has no instruments of another, and no cursor leads to them.
    async fn the_list_shows_no_other_organization(lab: &InstrumentsLab) {
        let expected = lab.stored(lab.ours, &[1, 3, 5]).await;
        lab.stored(lab.theirs, &[2, 4, 6]).await;
        let read = async |page| lab.instruments.list(lab.ours, page).await;
        assert_pages([1], &expected, read).await;
    }
);
