//! Models of images by the built program, on the tiny checkpoints of `just test-multimodal`, which sets
//! `MULTIMODAL_FIXTURES` to their directory.

use std::{
    collections::BTreeSet,
    env,
    fmt::Write as _,
    fs,
    io::Cursor,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::Method;
use serde_json::{Value, json};

use super::platform_trainings::{ended, predict, processes, train, until_fitting};
use crate::{
    process::directory,
    work::platform_runs::{Lab, pause},
};

/// Number of pictures.
const ROWS: usize = 40;

/// First bytes of a PNG file in base64.
const PNG: &str = "iVBORw0KGgo";

/// Time in which a cancelled training must have ended.
const CANCELLED_WITHIN: Duration = Duration::from_secs(10);

fn fixtures() -> PathBuf {
    let directory = env::var_os("MULTIMODAL_FIXTURES");
    PathBuf::from(directory.expect("`just test-multimodal` sets MULTIMODAL_FIXTURES"))
}

/// Lets the server of that directory use the packages that an earlier test installed.
fn share_packages(directory: &Path) {
    let jobs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("multimodal-jobs");
    fs::create_dir_all(&jobs).unwrap();
    let data = directory.join(".labdata");
    fs::create_dir(&data).unwrap();
    symlink(jobs, data.join("jobs")).unwrap();
}

/// Ids of the processes of trainings and predictors.
fn running(directory: &Path) -> BTreeSet<String> {
    let workers = format!("{}/.labdata/jobs/workers/", directory.display());
    processes(&workers).into_keys().collect()
}

/// Uploads the pictures of that name; returns the ids of their files.
async fn upload(lab: &Lab, instrument: &Value, name: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for row in 0..ROWS {
        let file = format!("{name}-{row}.png");
        let bytes = fs::read(fixtures().join("images").join(&file)).unwrap();
        let id = lab.upload(instrument, &file, bytes).await;
        ids.push(id.as_str().unwrap().to_owned());
    }
    ids
}

async fn dataset(lab: &Lab, instrument: &Value, name: &str, csv: String) -> Value {
    let file = lab
        .upload(instrument, &format!("{name}.csv"), csv.into_bytes())
        .await;
    let body = json!({"name": name, "file_id": file});
    lab.call(Method::POST, "/datasets", body).await["id"].clone()
}

#[tokio::test]
async fn models_of_images_are_trained_predict_and_are_cancelled() {
    let directory = directory();
    let place = directory.path();
    share_packages(place);
    let checkpoints = fixtures().join("checkpoints");
    let settings = [
        (
            "LABDATA_TRAINING_CHECKPOINTS",
            checkpoints.to_str().unwrap(),
        ),
        // Ends the fit: AutoGluon's default is tens of epochs.
        ("LABDATA_TRAINING_TIME_LIMIT", "20"),
    ];
    let lab = Lab::start_with(place, &[], &settings);
    let camera = lab
        .call(Method::POST, "/instruments", json!({"name": "camera"}))
        .await;
    let pictures = upload(&lab, &camera["id"], "image").await;

    let mut csv = "picture,note,volume,label\n".to_owned();
    for (row, picture) in pictures.iter().enumerate() {
        let (warmth, label) = if row % 2 == 0 {
            ("cold", "blue")
        } else {
            ("warm", "red")
        };
        writeln!(csv, "{picture},the {warmth} sample,{row}.5,{label}").unwrap();
    }
    let discs = dataset(&lab, &camera["id"], "discs", csv).await;
    let model = json!({"name": "colors", "image_columns": ["picture"]});
    let queued = train(&lab, &discs, "medium_quality", model).await;
    assert_eq!(queued["task_type"], "multimodal");
    let colors = ended(&lab, &queued).await;
    assert_eq!(colors["status"], "ready", "{colors}");
    let rows = [
        json!({"picture": pictures[0], "note": "the cold sample", "volume": 1.0}),
        json!({"picture": pictures[1], "note": null, "volume": null}),
    ];
    let predicted = predict(&lab, &colors, &rows).await;
    for color in predicted["predictions"].as_array().unwrap() {
        assert!(
            ["red", "blue"].contains(&color.as_str().unwrap()),
            "{predicted}"
        );
    }
    assert_eq!(
        predicted["probabilities"].as_array().unwrap().len(),
        rows.len()
    );

    let masks = upload(&lab, &camera["id"], "mask").await;
    let mut csv = "picture,label\n".to_owned();
    for (picture, mask) in pictures.iter().zip(&masks) {
        writeln!(csv, "{picture},{mask}").unwrap();
    }
    let regions = dataset(&lab, &camera["id"], "regions", csv).await;
    let model = json!({
        "name": "masks", "image_columns": ["picture"], "task_type": "segmentation",
        "problem_type": "semantic_segmentation",
    });
    let queued = train(&lab, &regions, "medium_quality", model).await;
    let segmented = ended(&lab, &queued).await;
    assert_eq!(segmented["status"], "ready", "{segmented}");
    let predicted = predict(&lab, &segmented, &[json!({"picture": pictures[5]})]).await;
    let mask = predicted["predictions"][0].as_str().unwrap();
    assert!(mask.starts_with(PNG), "{mask:.40}");

    let again = json!({"ml_model_id": colors["id"], "image_columns": ["picture"]});
    cancelled_while_fitting(&lab, place, &discs, again).await;
    let again = json!({
        "ml_model_id": segmented["id"], "image_columns": ["picture"], "task_type": "segmentation",
        "problem_type": "semantic_segmentation",
    });
    cancelled_while_fitting(&lab, place, &regions, again).await;
    let predicted = predict(&lab, &segmented, &[json!({"picture": pictures[5]})]).await;
    assert_eq!(predicted["version_number"], 1);
    let mask = predicted["predictions"][0].as_str().unwrap();
    assert!(mask.starts_with(PNG), "{mask:.40}");
    learns_from_vetted_masks(&lab, &pictures).await;
}

/// The mask of a fixture, which is gray, as annotations have it: white on transparent.
fn transparent(gray: &[u8]) -> Vec<u8> {
    let mut reader = png::Decoder::new(Cursor::new(gray)).read_info().unwrap();
    let mut values = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut values).unwrap();
    let (width, height) = reader.info().size();
    let mut mask = Vec::new();
    let mut encoder = png::Encoder::new(&mut mask, width, height);
    encoder.set_color(png::ColorType::GrayscaleAlpha);
    let mut writer = encoder.write_header().unwrap();
    let pixels: Vec<u8> = values.into_iter().flat_map(|value| [255, value]).collect();
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    mask
}

async fn annotate(lab: &Lab, picture: &str, annotations: &Value) -> Value {
    let path = format!("/images/{picture}/annotations");
    let body = json!({"annotations": annotations});
    lab.call(Method::POST, &path, body).await
}

/// Vetted masks become a dataset, from which a segmentation learns; what it predicts is saved as it is, and the
/// model learns again.
async fn learns_from_vetted_masks(lab: &Lab, pictures: &[String]) {
    for (row, picture) in pictures.iter().enumerate() {
        let file = fixtures().join(format!("images/mask-{row}.png"));
        let mask = STANDARD.encode(transparent(&fs::read(file).unwrap()));
        let annotation = json!({"mask": mask, "label": "disc", "is_human_vetted": true});
        annotate(lab, picture, &json!([annotation])).await;
    }
    let body = json!({"name": "vetted discs", "label": "disc", "annotated": true});
    let vetted = lab.call(Method::POST, "/datasets", body).await;
    assert_eq!(vetted["row_count"], ROWS);
    let segmentation = json!({
        "name": "discs", "image_columns": ["image"], "target_column": "mask",
        "task_type": "segmentation", "problem_type": "semantic_segmentation",
    });
    let queued = train(lab, &vetted["id"], "medium_quality", segmentation).await;
    let model = ended(lab, &queued).await;
    assert_eq!(model["status"], "ready", "{model}");
    let body = json!({
        "ml_model_id": model["id"], "data": [{"image": pictures[5]}], "pixel_threshold": 0.0,
    });
    // Loads the model, which takes several requests.
    predict(lab, &model, &[json!({"image": pictures[5]})]).await;
    let predicted = lab.call(Method::POST, "/ml-models/predict", body).await;
    let annotations = &predicted["annotations"];
    assert_eq!(annotations[0]["label"], "disc", "{predicted:.400}");
    assert_eq!(annotations[0]["foreground_fraction"], 1.0);
    let saved = annotate(lab, &pictures[5], annotations).await;
    assert_eq!(saved[0]["is_human_vetted"], false);
    let again = json!({
        "ml_model_id": model["id"], "image_columns": ["image"], "target_column": "mask",
        "task_type": "segmentation", "problem_type": "semantic_segmentation",
    });
    let queued = train(lab, &vetted["id"], "medium_quality", again).await;
    let model = ended(lab, &queued).await;
    assert_eq!(
        (&model["status"], &model["version_number"]),
        (&json!("ready"), &json!(2))
    );
}

/// Trains another version of that model, and cancels it while it fits: its processes end, and those of
/// predictors do not.
async fn cancelled_while_fitting(lab: &Lab, place: &Path, dataset: &Value, model: Value) {
    let predictors = running(place);
    let queued = train(lab, dataset, "medium_quality", model).await;
    until_fitting(lab, &queued, &Value::Null).await;
    assert!(!running(place).is_subset(&predictors));
    let began = Instant::now();
    let path = format!(
        "/ml-models/{}/cancel-training",
        queued["id"].as_str().unwrap()
    );
    let cancelled = lab.call(Method::POST, &path, Value::Null).await;
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(cancelled["version_number"], queued["version_number"]);
    while !running(place).is_subset(&predictors) {
        assert!(began.elapsed() < CANCELLED_WITHIN, "{:?}", running(place));
        pause().await;
    }
}
