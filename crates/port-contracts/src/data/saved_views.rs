//! Contract of [`SavedViewRepository`].

use futures::future::join_all;
use labdata_domain::{
    conflict::Conflict,
    data::saved_view::{SavedView, SavedViewChange},
    ids::{OrganizationId, SavedViewId, UserId},
};
use labdata_ports::data::saved_views::SavedViewRepository;

use crate::{
    assertions::{assert_conflict_is, assert_not_found, assert_one_winner},
    given::{self, at},
    lab::lab,
};

lab!(
    /// Saved views of two organizations.
    pub struct SavedViewsLab {
        /// Views.
        pub views: dyn SavedViewRepository,
    }
);

fn view(organization: OrganizationId, user: UserId, name: &str) -> SavedView {
    SavedView {
        id: SavedViewId::new(given::uuid()),
        organization,
        name: name.to_owned(),
        address: "#/tables/sample?_sort=-name".to_owned(),
        is_pinned: false,
        created_by: user,
        created_at: at(1),
    }
}

impl SavedViewsLab {
    async fn stored(&self, name: &str) -> SavedView {
        let view = view(self.ours, self.ada.id, name);
        self.views.add(&view).await.unwrap();
        view
    }
}

fn renamed(name: &str) -> SavedViewChange {
    SavedViewChange {
        name: Some(name.to_owned()),
        ..SavedViewChange::default()
    }
}

crate::suite!(
    use data::saved_views;

    /// Every field is stored, and the list is by name.
    async fn a_saved_view_reads_back_as_it_was_added(lab: &SavedViewsLab) {
        let second = SavedView {
            is_pinned: true,
            address: "#/sql?q=select+%22ü%22".to_owned(),
            ..view(lab.ours, lab.ada.id, "b \"ü\"")
        };
        lab.views.add(&second).await.unwrap();
        let first = lab.stored("a").await;
        assert_eq!(lab.views.get(lab.ours, second.id).await.unwrap(), second);
        assert_eq!(lab.views.list(lab.ours).await.unwrap(), [first, second]);
    }

    /// Of views added concurrently under one name, exactly one is stored.
    async fn of_racing_views_with_one_name_one_is_added(lab: &SavedViewsLab) {
        let candidates: Vec<SavedView> = (0..5).map(|_| view(lab.ours, lab.ada.id, "a")).collect();
        let racing = candidates.iter().map(|view| lab.views.add(view));
        assert_one_winner(join_all(racing).await);
        let other = view(lab.theirs, lab.eve.id, "a");
        lab.views.add(&other).await.unwrap();
    }

    /// A view takes no name of another, and is saved by a user of the organization.
    async fn a_view_that_cannot_be_is_refused(lab: &SavedViewsLab) {
        lab.stored("a").await;
        let second = lab.stored("b").await;
        let taken = lab.views.update(lab.ours, second.id, &renamed("a")).await;
        assert_conflict_is(taken, &Conflict::SavedViewName("a".to_owned()));
        let strange = view(lab.ours, lab.eve.id, "c");
        assert_not_found(lab.views.add(&strange).await);
        assert_eq!(lab.views.get(lab.ours, second.id).await.unwrap(), second);
    }

    /// The response is the view after the change, and racing changes of different fields all take effect.
    async fn changes_of_different_fields_of_a_view_are_all_stored(lab: &SavedViewsLab) {
        let saved = lab.stored("a").await;
        let changes = [
            renamed("b"),
            SavedViewChange {
                is_pinned: Some(true),
                ..SavedViewChange::default()
            },
            SavedViewChange {
                address: Some("#/plates/curve".to_owned()),
                ..SavedViewChange::default()
            },
        ];
        let racing = changes.iter();
        let racing = racing.map(|change| lab.views.update(lab.ours, saved.id, change));
        for changed in join_all(racing).await {
            assert_eq!(changed.unwrap().id, saved.id);
        }
        let expected = SavedView {
            name: "b".to_owned(),
            is_pinned: true,
            address: "#/plates/curve".to_owned(),
            ..saved
        };
        let nothing = SavedViewChange::default();
        let stored = lab.views.update(lab.ours, expected.id, &nothing).await;
        assert_eq!(stored.unwrap(), expected);
        assert_eq!(lab.views.list(lab.ours).await.unwrap(), [expected]);
    }

    /// Another organization's view, or none, is not found, and stays as stored.
    async fn views_are_seen_and_changed_by_their_own_organization_only(lab: &SavedViewsLab) {
        let theirs = view(lab.theirs, lab.eve.id, "a");
        lab.views.add(&theirs).await.unwrap();
        for id in [theirs.id, SavedViewId::new(given::uuid())] {
            assert_not_found(lab.views.get(lab.ours, id).await);
            assert_not_found(lab.views.update(lab.ours, id, &renamed("b")).await);
            assert_not_found(lab.views.remove(lab.ours, id).await);
        }
        let listed = lab.views.list(lab.theirs).await.unwrap();
        assert_eq!(listed, std::slice::from_ref(&theirs));
        lab.views.remove(lab.theirs, theirs.id).await.unwrap();
        assert_eq!(lab.views.list(lab.theirs).await.unwrap(), []);
        assert_not_found(lab.views.remove(lab.theirs, theirs.id).await);
    }
);
