//! Models, their trainings and predictions, and the datasets that they learn from.

use labdata_application::Error;
use labdata_domain::{ids::ModelId, page::PageRequest, refusal::Resource};
use labdata_request_body::{
    Reader as _,
    fields::{optional, page, required},
    readers::{MaybeId, id, integer},
    shape,
};

use crate::Operation;

pub mod activate;
pub mod archive;
pub mod artifact;
pub mod cancel;
pub mod datasets;
pub mod get;
pub mod list;
pub mod model_view;
pub mod predict;
pub mod predict_table;
pub mod predictions_view;
pub mod progress;
pub mod report;
pub mod results;
pub mod train;
pub mod versions;

pub use model_view::ModelView;

shape! {
    /// The path of a model.
    #[derive(Clone, Copy, Debug)]
    pub struct ModelPath {
        /// The model's id
        pub ml_model_id: MaybeId<ModelId> = required(id()),
    }
}

shape! {
    /// Page of a list that is returned whole unless `limit` is given.
    #[derive(Clone, Copy, Debug)]
    pub struct ListVersionsQuery {
        page: PageRequest = page(None),
    }
}

shape! {
    /// Choice of a version.
    #[derive(Clone, Copy, Debug)]
    pub struct VersionQuery {
        /// The version's number
        version_number: Option<i64> = optional(integer(i64::MIN..=i64::MAX).with("minimum", 1).with("maximum", u32::MAX)),
    }
}

impl VersionQuery {
    /// Returns the number, if one is given.
    ///
    /// # Errors
    /// `NotFound` for a number that no version has.
    pub fn number(self) -> Result<Option<u32>, Error> {
        self.version_number.map(version_number).transpose()
    }
}

/// Returns the number of a version.
///
/// # Errors
/// `NotFound` for a number that no version has.
fn version_number(number: i64) -> Result<u32, Error> {
    u32::try_from(number).map_err(|_| Error::not_found(Resource::ModelVersion))
}

pub(crate) fn operations() -> Vec<Operation> {
    let mut operations = vec![
        train::operation(),
        // Before the path of a model, which would take its name for an id.
        predict::operation(),
        list::operation(),
        get::operation(),
        versions::operation(),
        activate::operation(),
        archive::operation(),
        cancel::operation(),
        progress::operation(),
        report::operation(),
        results::operation(),
        artifact::operation(),
        predict_table::operation(),
    ];
    operations.extend(datasets::operations());
    operations
}
