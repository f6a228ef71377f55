//! Models that the real trainer trained, in the real sandbox.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use labdata_domain::models::{PredictedValue, Predictions};
use labdata_ports::models::PredictError;
use serde_json::{Map, Value};

use crate::{
    support::processes_of,
    trained_lab::{Lab, data_directory, run, with_packages},
};

/// Program that replaces the predictor of an artifact by code, and stores it.
const POISON: &str = include_str!("programs/poison.py");

/// Code in the poisoned artifact: tries what it must not do, and reports what it could.
const ATTACK: &str = include_str!("programs/attack.py");

/// Share of the rows whose target was predicted.
fn accuracy(rows: &[Map<String, Value>], predictions: &Predictions) -> f64 {
    let right = rows.iter().zip(&predictions.values).filter(|(row, value)| {
        let Some(PredictedValue::Class(class)) = value else {
            panic!("{value:?}");
        };
        serde_json::to_value(class).unwrap() == row["target"]
    });
    let count = |number: usize| f64::from(u32::try_from(number).unwrap());
    count(right.count()) / count(rows.len())
}

#[tokio::test]
async fn a_trained_model_predicts_classes_with_their_probabilities() {
    let lab = Lab::new().await;
    let model = lab.model("wine", "/wine.artifact", 1);
    let rows = lab.rows("wine");
    let predictions = lab.predict(&model, rows.clone()).await.unwrap();
    assert!(accuracy(&rows, &predictions) > 0.9);
    let probabilities = predictions.probabilities.unwrap();
    assert_eq!(probabilities.columns.len(), 3);
    for row in 0..rows.len() {
        let columns = probabilities.columns.iter();
        let sum: f64 = columns.map(|column| column[row].unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
    }
}

#[tokio::test]
async fn values_of_all_types_and_nulls_reach_the_model() {
    let lab = Lab::new().await;
    let model = lab.model("mixed", "/mixed.artifact", 2);
    let rows = lab.rows("mixed");
    let predictions = lab.predict(&model, rows.clone()).await.unwrap();
    assert!(accuracy(&rows, &predictions) > 0.9);
    let mut nulls = rows[0].clone();
    nulls.values_mut().for_each(|value| *value = Value::Null);
    let predictions = lab.predict(&model, vec![nulls]).await.unwrap();
    assert_eq!(predictions.values.len(), 1);
}

#[tokio::test]
async fn requests_that_wait_together_have_the_answers_of_single_ones() {
    let lab = Arc::new(Lab::new().await);
    let model = lab.model("wine", "/wine.artifact", 1);
    let rows: Vec<_> = lab.rows("wine").into_iter().step_by(6).collect();
    let all = lab.predict(&model, rows.clone()).await.unwrap();
    let begun: Vec<_> = rows
        .into_iter()
        .map(|row| {
            let (lab, model) = (Arc::clone(&lab), model.clone());
            tokio::spawn(async move { lab.predict(&model, vec![row]).await })
        })
        .collect();
    for (expected, prediction) in all.values.iter().zip(begun) {
        let predicted = prediction.await.unwrap().unwrap();
        assert_eq!(&predicted.values[0], expected);
    }
}

#[tokio::test]
async fn an_artifact_with_another_hash_is_not_loaded() {
    let lab = Lab::new().await;
    let mut model = lab.model("wine", "/wine.artifact", 1);
    model.artifact.sha256[0] ^= 1;
    let refused = lab.predict(&model, lab.rows("wine")).await.unwrap_err();
    assert!(refused.to_string().contains("SHA-256 differs"), "{refused}");
}

#[tokio::test]
async fn a_killed_process_fails_what_it_predicts_and_another_one_follows() {
    let lab = Arc::new(Lab::new().await);
    let model = lab.model("wine", "/wine.artifact", 1);
    let rows = lab.rows("wine");
    lab.predict(&model, rows.clone()).await.unwrap();
    let many: Vec<_> = rows.iter().cycle().take(10_000).cloned().collect();
    // All predict over and over until one of them has met the kill.
    let has_failed = Arc::new(AtomicBool::new(false));
    let begun: Vec<_> = (0..8)
        .map(|_| {
            let (lab, model, many) = (Arc::clone(&lab), model.clone(), many.clone());
            let has_failed = Arc::clone(&has_failed);
            tokio::spawn(async move {
                while !has_failed.load(Ordering::Relaxed) {
                    match lab.predict(&model, many.clone()).await {
                        Ok(predictions) => assert_eq!(predictions.values.len(), 10_000),
                        Err(PredictError::Delayed(_)) => has_failed.store(true, Ordering::Relaxed),
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        if has_failed.load(Ordering::Relaxed) {
            break;
        }
        for pid in processes_of(&data_directory(), &lab.platform.url) {
            // The shell's own `kill`: a minimal system has no program of that name. It may have ended by itself.
            let kill = format!("kill -9 {pid}");
            let asked = std::process::Command::new("sh")
                .args(["-c", &kill])
                .status();
            asked.unwrap();
        }
    }
    for predictions in begun {
        predictions.await.unwrap();
    }
    lab.predict(&model, rows).await.unwrap();
}

#[tokio::test]
async fn no_prediction_fails_while_another_version_takes_over() {
    let lab = Arc::new(Lab::new().await);
    let versions = [10, 11].map(|version| lab.model("wine", "/wine.artifact", version));
    let rows = lab.rows("wine");
    lab.predict(&versions[0], rows.clone()).await.unwrap();
    let (switch, active) = tokio::sync::watch::channel(0_usize);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (lab, versions, rows) = (Arc::clone(&lab), versions.clone(), rows.clone());
            let mut active = active.clone();
            tokio::spawn(async move {
                let mut predicted = [0, 0];
                while predicted[1] < 5 {
                    let version = *active.borrow_and_update();
                    lab.predict(&versions[version], rows.clone()).await.unwrap();
                    predicted[version] += 1;
                }
                predicted
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    switch.send_replace(1);
    for client in clients {
        assert!(client.await.unwrap().iter().all(|count| *count > 0));
    }
}

#[tokio::test]
async fn a_poisoned_artifact_reaches_nothing_but_the_platform() {
    let lab = Lab::new().await;
    let database = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let secret = data_directory().join("objects");
    std::fs::create_dir_all(&secret).unwrap();
    let secret = secret.join("other-organization");
    std::fs::write(&secret, "secret").unwrap();
    let attack = ATTACK
        .replace("{platform}", &lab.platform.url)
        .replace(
            "{database}",
            &database.local_addr().unwrap().port().to_string(),
        )
        .replace("{secret}", &secret.display().to_string())
        .replace("{server}", &std::process::id().to_string());
    let arguments = [&*lab.platform.url, &*attack];
    run(
        &lab.platform,
        "poison",
        &with_packages(POISON),
        &arguments,
        None,
    )
    .await;
    let model = lab.model("wine", "/poison.artifact", 3);
    let refused = lab.predict(&model, lab.rows("wine")).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.ends_with("RuntimeError: could: platform"), "{text}");
}
