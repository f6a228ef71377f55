//! `POST /api/v1/ml-models/predict`

use labdata_application::{
    Error,
    models::prediction::{
        ModelReference,
        predict::{Predict, predict},
    },
};
use labdata_domain::{
    data::write::Rows,
    ids::ModelId,
    models::{MAX_MODEL_NAME_LENGTH, MAX_PREDICTION_ROWS, SegmentationOptions},
    refusal::Resource,
};
use labdata_request_body::{
    ProblemKind, Reader as _,
    fields::{optional, required},
    readers::{MaybeId, float, id, rows, text, unsigned},
    shape,
};
use serde_json::json;

use super::predictions_view::PredictionsView;
use crate::{About, Call, JsonBody, Method, Operation, OrNotFound, Read, Tag, tools::ToolFacts};

/// Maximum number of pixels of a region or a hole.
const MAX_REGION: u32 = 100_000_000;

shape! {
    /// The model, and the rows to predict.
    #[derive(Clone, Debug)]
    pub struct PredictBody {
        /// The model's id. Either this or `ml_model_name` is given.
        ml_model_id: Option<MaybeId<ModelId>> = optional(id()),
        /// The name of a model that is not archived.
        ml_model_name: Option<String> = optional(text(..=MAX_MODEL_NAME_LENGTH)),
        /// The rows: values by the names of the model's features. Image features take ids of files.
        /// Other names are ignored, and null is a missing value.
        data: Rows = required(
            rows()
                .of(1..=MAX_PREDICTION_ROWS)
                .example(json!([{"alcohol": 13.2, "hue": 1.05}])),
        ),
        /// Of a segmentation: probability from which a pixel belongs to the mask; 0.5 by default.
        pixel_threshold: Option<f64> = optional(float().with("minimum", 0).with("maximum", 1)),
        /// Of a segmentation: connected regions with fewer pixels are left out; 0 by default.
        min_region_pixels: Option<u32> = optional(unsigned(0..=MAX_REGION)),
        /// Of a segmentation: holes of at most that many pixels are filled, all of them by default; 0 fills none.
        max_hole_pixels: Option<u32> = optional(unsigned(0..=MAX_REGION)),
        /// Of a segmentation: masks whose mean probability is lower are left out; 0 by default.
        min_confidence: Option<f64> = optional(float().with("minimum", 0).with("maximum", 1)),
    }
    example json!({
        "ml_model_name": "Cultivar",
        "data": [{"alcohol": 13.2, "color": 5.6, "hue": 1.05}, {"alcohol": 12.4, "color": 2.1, "hue": 0.98}],
    });
    rules |at| {
        if let (Some(id), Some(name)) = (ml_model_id, ml_model_name)
            && id.is_some() == name.is_some()
        {
            at.report(ProblemKind::value_error("give either ml_model_id or ml_model_name"));
        }
        for (name, share) in [("pixel_threshold", pixel_threshold), ("min_confidence", min_confidence)] {
            match share.flatten() {
                Some(share) if share < 0.0 => {
                    at.field(name).report(ProblemKind::greater_than_equal(0));
                }
                Some(share) if share > 1.0 => {
                    at.field(name).report(ProblemKind::less_than_equal(1));
                }
                _ => {}
            }
        }
    }
}

impl TryFrom<PredictBody> for Predict {
    type Error = Error;

    fn try_from(body: PredictBody) -> Result<Self, Error> {
        let model = match (body.ml_model_id, body.ml_model_name) {
            (Some(id), _) => ModelReference::Id(id.or_not_found(Resource::Model)?),
            (None, name) => {
                let unknown = || Error::not_found(Resource::Model);
                ModelReference::Name(name.ok_or_else(unknown)?)
            }
        };
        let standard = SegmentationOptions::default();
        let is_given = body.pixel_threshold.is_some()
            || body.min_region_pixels.is_some()
            || body.max_hole_pixels.is_some()
            || body.min_confidence.is_some();
        let segmentation = is_given.then(|| SegmentationOptions {
            pixel_threshold: body.pixel_threshold.unwrap_or(standard.pixel_threshold),
            min_region_pixels: body.min_region_pixels.unwrap_or(standard.min_region_pixels),
            max_hole_pixels: body.max_hole_pixels,
            min_confidence: body.min_confidence.unwrap_or(standard.min_confidence),
        });
        Ok(Self {
            model,
            rows: body.data,
            segmentation,
        })
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "predict",
        method: Method::Post,
        path: "/api/v1/ml-models/predict",
        tag: Tag::MlModels,
        summary: "Predict with a model",
        description: "Predicts rows with the active version of a model. A row needs a value or null for each \
            of the model's features; problems are listed by row and column, and then nothing is \
            predicted. The first prediction of a version takes some seconds, or longer where packages \
            must be installed: 503 with `Retry-After` says so. While a newer version is loaded, for two \
            minutes at most, the one before predicts; `version_number` names the version that did. At \
            most 10,000 rows. A segmentation also takes thresholds, which other models refuse, and returns \
            `annotations`.",
        returns: "A prediction per row",
        refusals: &[
            (
                400,
                "The model has no active version, or cannot read the rows: the detail names rows and \
                 columns",
            ),
            (
                503,
                "The model is being prepared, or too many predictions are under way; try again after \
                 `Retry-After` seconds",
            ),
        ],
    }
    .runs(run)
    .tool_running(
        ToolFacts::of("Predicts rows with the active version of an ML model."),
        run_for_model,
    )
}

async fn run(call: Call<Read, JsonBody<PredictBody>>) -> Result<PredictionsView, Error> {
    let command = Predict::try_from(call.body)?;
    Ok(predict(&call.services, &call.actor, command).await?.into())
}

async fn run_for_model(call: Call<Read, JsonBody<PredictBody>>) -> Result<PredictionsView, Error> {
    Ok(run(call).await?.without_images())
}
