//! `/api/v1/groups`

use labdata_application::Error;
use labdata_domain::{
    ids::{GroupId, UserId},
    people::group::Group,
    refusal::Resource,
};
use labdata_request_body::{
    Timestamp,
    fields::required,
    output,
    readers::{MaybeId, id},
    shape,
};

use crate::{Operation, OrNotFound};

pub mod create;
pub mod delete;
pub mod list;
pub mod update;

shape! {
    /// The path of a group.
    #[derive(Clone, Copy, Debug)]
    pub struct GroupPath {
        /// The group's id
        group_id: MaybeId<GroupId> = required(id()),
    }
}

output! {
    /// A group of users.
    #[derive(Clone, Debug)]
    pub struct GroupView as "Group" from group: Group {
        /// Its id.
        id: GroupId = group.id,
        /// Its name, unique within the organization. Definitions of tables name it.
        #[example = "Microscopy"]
        name: String = group.name,
        /// The ids of its members.
        members: Vec<UserId> = group.members,
        created_at: Timestamp = group.created_at.into(),
    }
}

/// Members by their ids; an id of no user is not found.
fn members(ids: Vec<MaybeId<UserId>>) -> Result<Vec<UserId>, Error> {
    let ids = ids.into_iter();
    ids.map(|id| id.or_not_found(Resource::User)).collect()
}

pub(super) fn operations() -> Vec<Operation> {
    vec![
        create::operation(),
        list::operation(),
        update::operation(),
        delete::operation(),
    ]
}
