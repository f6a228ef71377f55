//! `GET /api/v1/ml-models/{ml_model_id}/results`

use std::collections::BTreeMap;

use actix_web::web::Json;
use labdata_application::models::get_result::get_result;
use labdata_domain::{
    models::{Class, FeatureType, ModelVersion, TrainingResult},
    refusal::Resource,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::names;

use super::{ModelPath, VersionQuery, model_view::MlProblemType};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read, error::ErrorBody};

names! {
    /// Type of the values of a feature.
    pub MlFeatureType = FeatureType::ALL.map(FeatureType::as_str);
}

/// Result of a training.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TrainingResult)]
pub struct ResultView {
    /// The version.
    version_number: u32,
    /// Kind of value that it predicts.
    #[schema(value_type = MlProblemType)]
    problem_type: &'static str,
    /// The classes in order, of which the last of two is the positive one; null where none are
    /// predicted. Booleans, numbers or strings.
    classes: Option<Vec<Value>>,
    /// Metrics by name, measured on rows that the model has not learned from.
    metrics: BTreeMap<String, MetricView>,
    /// Name of the metric that matters most.
    primary_metric: String,
    /// The models that were tried, best first.
    leaderboard: Vec<LeaderboardEntryView>,
    /// The features, most important first; null where it was not measured.
    feature_importance: Option<Vec<FeatureImportanceView>>,
    /// Counts of actual and predicted classes; null for a regression and for over 100 classes.
    confusion_matrix: Option<ConfusionMatrixView>,
    /// Actual and predicted values of up to 1,000 rows; null for a classification.
    residuals: Option<Vec<ResidualView>>,
    rows: RowCountsView,
    /// The columns that the model reads.
    features: Vec<FeatureView>,
    /// Versions of the programs that made the artifact.
    versions: BTreeMap<String, String>,
}

/// Value of a metric.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Metric)]
pub struct MetricView {
    /// Its value.
    value: f64,
    /// True if a greater value is better.
    higher_is_better: bool,
}

/// Model that was tried. Scores are null where unknown.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = LeaderboardEntry)]
pub struct LeaderboardEntryView {
    /// Name of the model.
    model: String,
    /// Score on held-out rows.
    score: Option<f64>,
    /// Score on validation rows.
    validation_score: Option<f64>,
    /// Time of its training in seconds.
    fit_seconds: Option<f64>,
    /// Time of its predictions in seconds.
    predict_seconds: Option<f64>,
}

/// Importance of a feature.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = FeatureImportance)]
pub struct FeatureImportanceView {
    /// Name of the feature.
    feature: String,
    /// Loss of score when the feature's values are shuffled.
    importance: Option<f64>,
    /// Standard deviation of the importance.
    stddev: Option<f64>,
}

/// Numbers of rows by actual and predicted class.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ConfusionMatrix)]
pub struct ConfusionMatrixView {
    /// The classes, in the order of rows and columns.
    labels: Vec<Value>,
    /// A list per actual class with a number per predicted class.
    counts: Vec<Vec<u64>>,
}

/// Actual and predicted value of a row.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Residual)]
pub struct ResidualView {
    /// The value in the dataset.
    actual: f64,
    /// The predicted value.
    predicted: f64,
}

/// Numbers of rows.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = RowCounts)]
pub struct RowCountsView {
    /// Rows that the model learned from.
    train: u64,
    /// Held-out rows.
    test: u64,
}

/// Column that a model reads.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ModelFeature)]
pub struct FeatureView {
    /// Name of the column.
    name: String,
    /// Type of its values.
    #[schema(value_type = MlFeatureType)]
    data_type: &'static str,
    /// True if rows that the model learned from have no value.
    nullable: bool,
    /// The distinct values of a text column with at most 50.
    levels: Option<Vec<String>>,
}

fn class(class: Class) -> Value {
    match class {
        Class::Boolean(value) => value.into(),
        Class::Integer(value) => value.into(),
        Class::Float(value) => value.into(),
        Class::Text(value) => value.into(),
    }
}

impl ResultView {
    fn new(version: &ModelVersion, result: TrainingResult) -> Self {
        let classes = |classes: Vec<Class>| classes.into_iter().map(class).collect();
        Self {
            version_number: version.number,
            problem_type: result.problem_type.as_str(),
            classes: result.classes.map(classes),
            metrics: result
                .metrics
                .into_iter()
                .map(|(name, metric)| {
                    let view = MetricView {
                        value: metric.value,
                        higher_is_better: metric.higher_is_better,
                    };
                    (name, view)
                })
                .collect(),
            primary_metric: result.primary_metric,
            leaderboard: result
                .leaderboard
                .into_iter()
                .map(|entry| LeaderboardEntryView {
                    model: entry.model,
                    score: entry.score,
                    validation_score: entry.validation_score,
                    fit_seconds: entry.fit_seconds,
                    predict_seconds: entry.predict_seconds,
                })
                .collect(),
            feature_importance: result.feature_importance.map(|features| {
                let features = features.into_iter().map(|it| FeatureImportanceView {
                    feature: it.feature,
                    importance: it.importance,
                    stddev: it.stddev,
                });
                features.collect()
            }),
            confusion_matrix: result.confusion_matrix.map(|matrix| ConfusionMatrixView {
                labels: classes(matrix.labels),
                counts: matrix.counts,
            }),
            residuals: result.residuals.map(|residuals| {
                let residuals = residuals.into_iter().map(|it| ResidualView {
                    actual: it.actual,
                    predicted: it.predicted,
                });
                residuals.collect()
            }),
            rows: RowCountsView {
                train: result.rows.train,
                test: result.rows.test,
            },
            features: result
                .features
                .into_iter()
                .map(|feature| FeatureView {
                    name: feature.name,
                    data_type: feature.data_type.as_str(),
                    nullable: feature.nullable,
                    levels: feature.levels,
                })
                .collect(),
            versions: result.versions,
        }
    }
}

/// Reads the result of a training
///
/// Metrics, leaderboard, importance of features, confusion matrix or residuals: those of the active
/// version, unless `version_number` names another.
#[utoipa::path(
    get,
    path = "/api/v1/ml-models/{ml_model_id}/results",
    operation_id = "get_ml_model_results",
    tag = "ml-models",
    responses(
        (status = 200, description = "The result", body = ResultView),
        (status = 400, description = "The version is not ready", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Read, NoBody, VersionQuery, ModelPath>,
) -> ApiResult<Json<ResultView>> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let number = call.query.number()?;
    let (version, result) = get_result(call.ports(), &call.actor, id, number).await?;
    Ok(Json(ResultView::new(&version, result)))
}
