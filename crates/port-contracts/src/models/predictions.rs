//! Contract of [`Predictor`].

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use futures::future::join_all;
use labdata_domain::{
    files::ObjectKey,
    ids::{FileId, ModelVersionId, OrganizationId},
    models::{
        Artifact, FeatureColumn, FeatureType, FeatureValues, ModelFeature, ModelSignature,
        PredictedValue, PredictionInput, ProblemType, TaskType,
    },
};
use labdata_ports::models::{PredictError, PredictionRequest, Predictor, ServedModel};

use crate::{Itself, Subject, given};

/// Prerequisites of these clauses. All models of the harness predict the sum of a row's numbers.
#[async_trait]
pub trait Predictors: Subject<dyn Predictor> {
    /// Lets some milliseconds pass.
    async fn pause(&self);
}

/// A version whose features are a number and an image.
fn model() -> ServedModel {
    let feature = |name: &str, data_type| ModelFeature {
        name: name.to_owned(),
        data_type,
        nullable: true,
        levels: None,
    };
    ServedModel {
        organization: OrganizationId::new(given::uuid()),
        version: ModelVersionId::new(given::uuid()),
        task: TaskType::Multimodal,
        signature: Arc::new(ModelSignature {
            features: vec![
                feature("x", FeatureType::Float),
                feature("photo", FeatureType::Image),
            ],
            problem: ProblemType::Regression,
            classes: None,
        }),
        artifact: Artifact {
            object: ObjectKey::new(given::uuid()),
            sha256: [7; 32],
            size: 1,
        },
        artifact_url: "http://127.0.0.1:1/artifact".to_owned(),
    }
}

async fn predict(
    predictor: &dyn Predictor,
    model: &ServedModel,
    x: &[f64],
) -> Result<Vec<f64>, PredictError> {
    let photo = FileId::new(given::uuid());
    let column = |name: &str, values| FeatureColumn {
        name: name.to_owned(),
        values,
    };
    let numbers = x.iter().copied().map(Some).collect();
    let request = PredictionRequest {
        input: PredictionInput {
            rows: x.len(),
            columns: vec![
                column("x", FeatureValues::Numbers(numbers)),
                column("photo", FeatureValues::Images(vec![photo; x.len()])),
            ],
        },
        image_urls: BTreeMap::from([(photo, "http://127.0.0.1:1/photo".to_owned())]),
        segmentation: None,
    };
    let predictions = predictor.predict(model, request).await?;
    let values = predictions.values.into_iter();
    Ok(values
        .map(|value| match value {
            Some(PredictedValue::Number(number)) => number,
            other => panic!("{other:?}"),
        })
        .collect())
}

crate::suite!(
    use models::predictions;

    /// Predictions have the order of the rows, also of as many as a request may have.
    async fn every_row_has_its_prediction(harness: &Itself<impl Predictors>) {
        let (predictor, model) = (harness.subject(), model());
        for count in [1, 10_000] {
            let x: Vec<f64> = (0..count).map(|row| f64::from(row) / 2.0).collect();
            assert_eq!(predict(&*predictor, &model, &x).await.unwrap(), x);
        }
    }

    /// Requests that arrive together are answered each for itself.
    async fn simultaneous_requests_have_their_own_predictions(harness: &Itself<impl Predictors>) {
        let (predictor, model) = (harness.subject(), model());
        let requests = (0..20).map(|row| {
            let (predictor, model) = (&*predictor, &model);
            async move {
                let x = [f64::from(row), 0.5];
                assert_eq!(predict(predictor, model, &x).await.unwrap(), x);
            }
        });
        join_all(requests).await;
    }

    /// A version that never predicted is not ready.
    async fn a_version_is_ready_once_it_predicted(harness: &Itself<impl Predictors>) {
        let predictor = harness.subject();
        let (model, other) = (model(), model());
        assert!(!predictor.is_ready(&model));
        predict(&*predictor, &model, &[1.0]).await.unwrap();
        assert!(predictor.is_ready(&model));
        assert!(!predictor.is_ready(&other));
    }

    /// A version that is prepared becomes ready even without a caller that waits for it.
    async fn a_version_can_be_prepared_before_it_predicts(harness: &Itself<impl Predictors>) {
        let (predictor, model) = (harness.subject(), model());
        for _ in 0..3 {
            predictor.prepare(&model);
        }
        while !predictor.is_ready(&model) {
            harness.pause().await;
        }
        assert_eq!(predict(&*predictor, &model, &[2.0]).await.unwrap(), [2.0]);
    }

    /// A model is known by its version and its organization.
    async fn the_same_version_of_another_organization_is_another_model(
        harness: &Itself<impl Predictors>,
    ) {
        let (predictor, ours) = (harness.subject(), model());
        predict(&*predictor, &ours, &[1.0]).await.unwrap();
        let theirs = ServedModel {
            organization: OrganizationId::new(given::uuid()),
            ..ours
        };
        assert!(!predictor.is_ready(&theirs));
        predict(&*predictor, &theirs, &[1.0]).await.unwrap();
        assert!(predictor.is_ready(&theirs));
    }

    /// After the end no version is ready or becomes it, and predictions fail.
    async fn nothing_predicts_after_the_end(harness: &Itself<impl Predictors>) {
        let predictor = harness.subject();
        let (model, other) = (model(), model());
        predict(&*predictor, &model, &[1.0]).await.unwrap();
        predictor.close().await;
        assert!(!predictor.is_ready(&model));
        predictor.prepare(&other);
        harness.pause().await;
        assert!(!predictor.is_ready(&other));
        for model in [&model, &other] {
            let refused = predict(&*predictor, model, &[1.0]).await;
            assert!(
                matches!(refused, Err(PredictError::Delayed(_))),
                "{refused:?}"
            );
        }
    }
);
