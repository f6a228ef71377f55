//! `GET /api/v1/ml-models/{ml_model_id}/report`

use super::{ModelPath, VersionQuery};
use crate::{About, HtmlPage, Method, NoBody, Operation, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "get_ml_model_report",
        method: Method::Get,
        path: "/api/v1/ml-models/{ml_model_id}/report",
        tag: Tag::MlModels,
        summary: "Shows the results of a training as a page",
        description: "One HTML page that needs no script and no network: metrics, confusion matrix or \
            residuals, importance of features and the models that were tried. Of the active version, \
            unless `version_number` names another.",
        returns: "The page",
        refusals: &[(400, "The version is not ready")],
    }
    .served_by_hand::<Read, NoBody, VersionQuery, ModelPath, HtmlPage>()
}
