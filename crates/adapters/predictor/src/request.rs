//! Requests as the process reads them.

use labdata_domain::{models::FeatureValues, timestamp};
use labdata_ports::models::PredictionRequest;
use serde_json::{Map, Value, json};

use crate::arrow;

/// Returns the body of the frame for a request: an Arrow stream, or JSON for images.
///
/// # Errors
/// If the columns are no Arrow table.
pub(crate) fn encode(id: u64, request: &PredictionRequest) -> Result<Vec<u8>, String> {
    let columns = &request.input.columns;
    let has_images = columns
        .iter()
        .any(|column| matches!(column.values, FeatureValues::Images(_)));
    if has_images {
        return Ok(json(id, request).to_string().into_bytes());
    }
    arrow::encode(id, &request.input).map_err(|error| error.to_string())
}

fn json(id: u64, request: &PredictionRequest) -> Value {
    let columns: Map<String, Value> = request
        .input
        .columns
        .iter()
        .map(|column| (column.name.clone(), list(&column.values)))
        .collect();
    let images: Map<String, Value> = request
        .image_urls
        .iter()
        .map(|(file, url)| (file.to_string(), Value::from(url.as_str())))
        .collect();
    let mut message = json!({"id": id, "columns": columns, "images": images});
    if let (Some(options), Some(message)) = (&request.segmentation, message.as_object_mut()) {
        let options = json!({
            "pixel_threshold": options.pixel_threshold,
            "min_region_pixels": options.min_region_pixels,
            "max_hole_pixels": options.max_hole_pixels,
            "min_confidence": options.min_confidence,
        });
        message.insert("segmentation".to_owned(), options);
    }
    message
}

fn list(values: &FeatureValues) -> Value {
    match values {
        FeatureValues::Numbers(values) => json!(values),
        FeatureValues::Booleans(values) => json!(values),
        FeatureValues::Texts(values) => json!(values),
        FeatureValues::Times(values) => {
            let texts = values.iter().map(|at| at.map(timestamp::render));
            texts.collect()
        }
        FeatureValues::Images(files) => files.iter().map(ToString::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use labdata_domain::{
        ids::FileId,
        models::{FeatureColumn, PredictionInput, SegmentationOptions},
    };

    use super::*;

    #[test]
    fn rows_with_images_are_sent_as_json_with_the_urls_of_their_files() {
        let file = FileId::new(uuid::Uuid::from_u128(7));
        let column = |name: &str, values| FeatureColumn {
            name: name.to_owned(),
            values,
        };
        let at = time::macros::datetime!(2026-03-01 12:00 UTC);
        let request = PredictionRequest {
            input: PredictionInput {
                rows: 1,
                columns: vec![
                    column("photo", FeatureValues::Images(vec![file])),
                    column("ph", FeatureValues::Numbers(vec![None])),
                    column("at", FeatureValues::Times(vec![Some(at)])),
                ],
            },
            image_urls: BTreeMap::from([(file, "http://platform/f".to_owned())]),
            segmentation: Some(SegmentationOptions::default()),
        };
        let body = encode(3, &request).unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap();
        let id = file.to_string();
        assert_eq!(
            message,
            json!({
                "id": 3,
                "columns": {"photo": [id], "ph": [null], "at": ["2026-03-01T12:00:00Z"]},
                "images": {id: "http://platform/f"},
                "segmentation": {
                    "pixel_threshold": 0.5, "min_region_pixels": 0, "max_hole_pixels": null,
                    "min_confidence": 0.0,
                },
            })
        );
    }
}
