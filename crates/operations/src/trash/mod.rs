//! `/api/v1/trash`

use labdata_domain::{
    ids::TrashId,
    trash::{TrashEntry, TrashKind},
};
use labdata_request_body::{
    Timestamp,
    fields::required,
    names, output,
    readers::{MaybeId, id},
    shape,
};

use crate::{Operation, executions::author::AuthorView};

pub mod list;
pub mod purge;
pub mod restore;

pub(crate) fn operations() -> Vec<Operation> {
    vec![list::operation(), restore::operation(), purge::operation()]
}

shape! {
    /// The path of an entry of the trash.
    #[derive(Clone, Copy, Debug)]
    pub struct TrashPath {
        /// The entry's id
        id: MaybeId<TrashId> = required(id()),
    }
}

names! {
    /// Kind of what was deleted.
    pub TrashKindName = TrashKind::ALL.map(TrashKind::as_str);
}

output! {
    /// A deleted file, table or column that can be restored.
    #[derive(Clone, Debug)]
    pub struct TrashEntryView as "TrashEntry" from entry: TrashEntry {
        /// Its id, which is not that of the file, table or column.
        id: TrashId = entry.id,
        /// Kind of what was deleted.
        kind: TrashKindName = entry.kind.as_str().into(),
        /// A file's path, a table's name, of a column `table.column`.
        #[example = "sample"]
        name: String = entry.name,
        /// When it was deleted.
        deleted_at: Timestamp = entry.deleted_at.into(),
        /// Author of the deletion.
        deleted_by: AuthorView = entry.deleted_by.into(),
        /// When it is purged.
        purge_at: Timestamp = entry.purge_at.into(),
        /// Bytes that it takes, which count for the quota.
        size_bytes: u64 = entry.size,
    }
}
