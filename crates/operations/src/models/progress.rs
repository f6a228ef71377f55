//! `GET /api/v1/ml-models/{ml_model_id}/progress`

use super::{ModelPath, ModelView, VersionQuery};
use crate::{About, EventStream, Method, NoBody, Operation, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "follow_ml_model_training",
        method: Method::Get,
        path: "/api/v1/ml-models/{ml_model_id}/progress",
        tag: Tag::MlModels,
        summary: "Follows the training of a version",
        description: "Server-sent events: `progress` with the version's record at first and whenever it \
            changes, and at last `end` with the record of the version that is ready, failed or cancelled. \
            The newest version, unless `version_number` names another. At most 32 logs and trainings of \
            an organization are followed at a time.",
        returns: "The events",
        refusals: &[(503, "Too many logs and trainings of the organization are followed")],
    }
    .served_by_hand::<Read, NoBody, VersionQuery, ModelPath, EventStream<ModelView>>()
}
