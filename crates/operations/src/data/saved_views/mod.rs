//! `/api/v1/saved-views`

use labdata_domain::{
    data::saved_view::SavedView,
    ids::{SavedViewId, UserId},
};
use labdata_request_body::{
    Timestamp,
    fields::required,
    output,
    readers::{MaybeId, id},
    shape,
};

use crate::Operation;

pub mod create;
pub mod delete;
pub mod list;
pub mod update;

/// Pattern of addresses within the console (ECMA 262). The rule itself is the domain's.
const ADDRESS: &str = r"^#/[^\u0000-\u001F\u007F-\u009F]*$";

shape! {
    /// The path of a saved view.
    #[derive(Clone, Copy, Debug)]
    pub struct SavedViewPath {
        /// The view's id
        saved_view_id: MaybeId<SavedViewId> = required(id()),
    }
}

output! {
    /// An address of the console under a name.
    #[derive(Clone, Debug)]
    pub struct SavedViewView as "SavedView" from view: SavedView {
        /// Its id.
        id: SavedViewId = view.id,
        /// Its name, unique within the organization.
        #[example = "Plates of March"]
        name: String = view.name,
        /// Its address within the console, from its `#` on.
        #[example = "#/plates/growth_curve?_layout=heat+map"]
        address: String = view.address,
        /// True if Home lists it.
        is_pinned: bool = view.is_pinned,
        /// The user who saved it.
        created_by: UserId = view.created_by,
        created_at: Timestamp = view.created_at.into(),
    }
}

pub(super) fn operations() -> Vec<Operation> {
    vec![
        create::operation(),
        list::operation(),
        update::operation(),
        delete::operation(),
    ]
}
