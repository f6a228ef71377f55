//! Contract of [`GroupRepository`].

use futures::future::join_all;
use labdata_domain::{
    catalog::{ColumnDefinition, TableAccess, TableDefinition},
    conflict::Conflict,
    ids::{GroupId, UserId},
    people::group::{Group, GroupChange},
    scalar::DataType,
};
use labdata_ports::{PortError, catalog::CatalogStore, people::groups::GroupRepository};

use crate::{
    assertions::{assert_conflict_is, assert_not_found, assert_one_winner},
    given::{self, at},
    lab::lab,
};

lab!(
    /// Groups of two organizations, and tables that name them.
    pub struct GroupsLab {
        /// Groups.
        pub groups: dyn GroupRepository,
        /// Tables.
        pub catalog: dyn CatalogStore,
    }
);

impl GroupsLab {
    async fn stored(&self, name: &str, members: &[UserId]) -> Group {
        let group = given::group(self.ours, name, members);
        self.groups.add(&group).await.unwrap();
        group
    }

    async fn update(&self, id: GroupId, change: &GroupChange) -> Result<Group, PortError> {
        self.groups.update(self.ours, id, change).await
    }

    async fn define(&self, read: &[&str], write: &[&str]) {
        let groups = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let columns = vec![ColumnDefinition::new("name", DataType::String)];
        let definition = TableDefinition {
            access: Some(TableAccess {
                read: groups(read),
                write: groups(write),
            }),
            ..TableDefinition::new("sample", columns)
        };
        let defined = self.catalog.define(self.ours, &definition, at(1)).await;
        defined.unwrap();
    }

    async fn access(&self) -> TableAccess {
        let catalog = self.catalog.snapshot(self.ours).await.unwrap();
        catalog.table("sample").unwrap().access.clone()
    }

    async fn groups_of(&self, user: UserId) -> Vec<String> {
        self.tenancy.user(self.ours, user).await.unwrap().groups
    }
}

fn renamed(name: &str) -> GroupChange {
    GroupChange {
        name: Some(name.to_owned()),
        members: None,
    }
}

fn with_members(members: &[UserId]) -> GroupChange {
    GroupChange {
        name: None,
        members: Some(members.to_vec()),
    }
}

crate::suite!(
    use people::groups;

    /// Every field is stored, and the list is by name.
    async fn a_group_reads_back_as_it_was_added(lab: &GroupsLab) {
        let ben = lab.user(lab.ours, "ben@example.org").await;
        let mut members = vec![lab.ada.id, ben.id];
        members.sort_unstable();
        let micro = lab.stored("Mikroskopie \"Süd\"", &members).await;
        let empty = lab.stored("Analytics", &[]).await;
        assert_eq!(lab.groups.get(lab.ours, micro.id).await.unwrap(), micro);
        assert_eq!(lab.groups.list(lab.ours).await.unwrap(), [empty, micro]);
    }

    /// A user has the names of the groups, sorted, however the user is read; so has the user's key.
    async fn users_and_keys_carry_their_groups(lab: &GroupsLab) {
        let key = lab.api_key(&lab.ada).await;
        lab.stored("b", &[lab.ada.id]).await;
        let second = lab.stored("a", &[lab.ada.id]).await;
        lab.stored("c", &[]).await;
        assert_eq!(lab.groups_of(lab.ada.id).await, ["a", "b"]);
        let found = lab.keys.find_by_prefix(&key.prefix).await.unwrap().unwrap();
        assert_eq!(found.groups, ["a", "b"]);
        assert_eq!(found.role, lab.ada.role);
        lab.update(second.id, &with_members(&[])).await.unwrap();
        assert_eq!(lab.groups_of(lab.ada.id).await, ["b"]);
        let found = lab.keys.get(lab.ours, key.id).await.unwrap();
        assert_eq!(found.groups, ["b"]);
    }

    /// Of groups added concurrently under one name, exactly one is stored.
    async fn of_racing_groups_with_one_name_one_is_added(lab: &GroupsLab) {
        let candidates: Vec<Group> = (0..5).map(|_| given::group(lab.ours, "a", &[])).collect();
        let racing = candidates.iter().map(|group| lab.groups.add(group));
        assert_one_winner(join_all(racing).await);
        let other = given::group(lab.theirs, "a", &[]);
        lab.groups.add(&other).await.unwrap();
    }

    /// Groups whose names differ in case or in Unicode's form would be mistaken for each other. A group may change its own
    /// name so.
    async fn a_twin_of_a_name_is_taken(lab: &GroupsLab) {
        let south = lab.stored("Süd", &[]).await;
        let other = lab.stored("b", &[]).await;
        let taken = Conflict::GroupName("Süd".to_owned());
        for name in ["SÜD", "su\u{308}d", "Süd"] {
            let added = lab.groups.add(&given::group(lab.ours, name, &[])).await;
            assert_conflict_is(added, &taken);
            assert_conflict_is(lab.update(other.id, &renamed(name)).await, &taken);
        }
        let own = lab.update(south.id, &renamed("SÜD")).await.unwrap();
        assert_eq!(own.name, "SÜD");
        let theirs = given::group(lab.theirs, "süd", &[]);
        lab.groups.add(&theirs).await.unwrap();
        let candidates = ["c", "C", "c", "C"];
        let candidates = candidates.map(|name| given::group(lab.ours, name, &[]));
        let racing = candidates.iter().map(|group| lab.groups.add(group));
        assert_one_winner(join_all(racing).await);
    }

    /// A group takes no name of another, and no member of another organization.
    async fn a_group_that_cannot_be_is_refused(lab: &GroupsLab) {
        lab.stored("a", &[]).await;
        let second = lab.stored("b", &[]).await;
        let taken = lab.update(second.id, &renamed("a")).await;
        assert_conflict_is(taken, &Conflict::GroupName("a".to_owned()));
        for stranger in [lab.eve.id, UserId::new(given::uuid())] {
            assert_not_found(lab.update(second.id, &with_members(&[stranger])).await);
            let group = given::group(lab.ours, "c", &[stranger]);
            assert_not_found(lab.groups.add(&group).await);
        }
        assert_eq!(lab.groups.get(lab.ours, second.id).await.unwrap(), second);
    }

    /// The response is the group after the change, and it is stored so.
    async fn a_change_of_a_group_keeps_the_rest(lab: &GroupsLab) {
        let group = lab.stored("a", &[lab.ada.id]).await;
        let expected = Group {
            name: "b".to_owned(),
            ..group.clone()
        };
        assert_eq!(lab.update(group.id, &renamed("b")).await.unwrap(), expected);
        let expected = Group {
            members: Vec::new(),
            ..expected
        };
        let twice = [lab.ada.id, lab.ada.id];
        lab.update(group.id, &with_members(&twice)).await.unwrap();
        assert_eq!(lab.groups_of(lab.ada.id).await, ["b"]);
        let changed = lab.update(group.id, &with_members(&[])).await.unwrap();
        assert_eq!(changed, expected);
        assert_eq!(lab.groups.get(lab.ours, group.id).await.unwrap(), expected);
    }

    /// Of members who join at the same time, all are in the end, however often each of them joins.
    async fn of_racing_members_all_join(lab: &GroupsLab) {
        let group = lab.stored("a", &[lab.ada.id]).await;
        let mut members = vec![lab.ada.id];
        for number in 0..6 {
            let user = lab.user(lab.ours, &format!("{number}@example.org")).await;
            members.push(user.id);
        }
        members.sort_unstable();
        let twice = members.iter().chain(&members);
        let racing = twice.map(|user| lab.groups.add_member(lab.ours, group.id, *user));
        let joined = join_all(racing).await.into_iter().map(Result::unwrap);
        let joined: Vec<Group> = joined.flatten().collect();
        assert_eq!(joined.len(), members.len() - 1);
        let expected = Group { members, ..group };
        assert!(joined.contains(&expected));
        assert_eq!(
            lab.groups.get(lab.ours, expected.id).await.unwrap(),
            expected
        );
        let id = expected.id;
        let stranger = UserId::new(given::uuid());
        for user in [lab.eve.id, stranger] {
            assert_not_found(lab.groups.add_member(lab.ours, id, user).await);
        }
        let nowhere = GroupId::new(given::uuid());
        assert_not_found(lab.groups.add_member(lab.ours, nowhere, lab.ada.id).await);
        assert_not_found(lab.groups.add_member(lab.theirs, id, lab.eve.id).await);
    }

    /// Whom a change of all members leaves out is no member after a racing addition of another.
    async fn an_addition_beside_a_change_brings_no_member_back(lab: &GroupsLab) {
        let ben = lab.user(lab.ours, "ben@example.org").await;
        for number in 0..8 {
            let group = lab.stored(&format!("g{number}"), &[lab.ada.id]).await;
            let change = with_members(&[]);
            let emptied = lab.update(group.id, &change);
            let added = lab.groups.add_member(lab.ours, group.id, ben.id);
            let (emptied, added) = futures::join!(emptied, added);
            emptied.unwrap();
            added.unwrap();
            let members = lab.groups.get(lab.ours, group.id).await.unwrap().members;
            assert!(!members.contains(&lab.ada.id), "{members:?}");
        }
    }

    /// The access of a table follows the name of a group, and catalogs read before are seen to be old.
    async fn tables_follow_the_name_of_a_group(lab: &GroupsLab) {
        let group = lab.stored("a", &[]).await;
        lab.stored("z", &[]).await;
        lab.define(&["z", "a"], &["a"]).await;
        let before = lab.catalog.snapshot(lab.ours).await.unwrap().version;
        lab.update(group.id, &renamed("b")).await.unwrap();
        let access = lab.access().await;
        assert_eq!(
            (access.read, access.write),
            (vec!["b".to_owned(), "z".to_owned()], vec!["b".to_owned()])
        );
        let after = lab.catalog.snapshot(lab.ours).await.unwrap();
        assert!(after.version > before);
        assert!(after.has_group("b") && !after.has_group("a"));
    }

    /// A definition without access keeps it, an empty one opens the table.
    async fn access_stays_until_it_is_set(lab: &GroupsLab) {
        lab.stored("a", &[]).await;
        lab.define(&[], &["a"]).await;
        let columns = vec![ColumnDefinition::new("name", DataType::String)];
        let mut definition = TableDefinition::new("sample", columns);
        lab.catalog
            .define(lab.ours, &definition, at(2))
            .await
            .unwrap();
        assert_eq!(lab.access().await.write, ["a"]);
        definition.access = Some(TableAccess::default());
        lab.catalog
            .define(lab.ours, &definition, at(3))
            .await
            .unwrap();
        assert!(lab.access().await.is_open());
        definition.access = Some(TableAccess {
            read: vec!["nobody".to_owned()],
            write: Vec::new(),
        });
        let refused = lab
            .catalog
            .define(lab.ours, &definition, at(4))
            .await
            .unwrap_err();
        assert!(
            refused.to_string().contains("there is no group \"nobody\""),
            "{refused}"
        );
    }

    /// A group that the access of a table names stays, with its members; another is removed.
    async fn a_group_that_a_table_names_is_not_removed(lab: &GroupsLab) {
        let named = lab.stored("a", &[lab.ada.id]).await;
        let other = lab.stored("b", &[lab.ada.id]).await;
        lab.define(&["a"], &[]).await;
        let refused = lab.groups.remove(lab.ours, named.id).await;
        assert_conflict_is(refused, &Conflict::GroupInUse("a".to_owned()));
        lab.groups.remove(lab.ours, other.id).await.unwrap();
        assert_eq!(lab.groups_of(lab.ada.id).await, ["a"]);
        lab.define(&[], &[]).await;
        lab.groups.remove(lab.ours, named.id).await.unwrap();
        assert_eq!(lab.groups.list(lab.ours).await.unwrap(), []);
        assert_not_found(lab.groups.remove(lab.ours, named.id).await);
    }

    /// Another organization's group, or none, is not found, and stays as stored.
    async fn groups_are_seen_and_changed_by_their_own_organization_only(lab: &GroupsLab) {
        let theirs = given::group(lab.theirs, "a", &[lab.eve.id]);
        lab.groups.add(&theirs).await.unwrap();
        for id in [theirs.id, GroupId::new(given::uuid())] {
            assert_not_found(lab.groups.get(lab.ours, id).await);
            assert_not_found(lab.update(id, &renamed("b")).await);
            assert_not_found(lab.update(id, &with_members(&[])).await);
            assert_not_found(lab.groups.remove(lab.ours, id).await);
        }
        assert_eq!(lab.groups.list(lab.theirs).await.unwrap(), [theirs]);
    }
);
