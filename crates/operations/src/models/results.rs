//! `GET /api/v1/ml-models/{ml_model_id}/results`

use std::collections::BTreeMap;

use labdata_application::{Error, models::get_result::get_result};
use labdata_domain::{
    models::{
        Class, ConfusionMatrix, FeatureImportance, FeatureType, LeaderboardEntry, Metric,
        ModelFeature, Residual, RowCounts,
    },
    refusal::Resource,
};
use labdata_request_body::{names, output};
use serde_json::Value;

use super::{ModelPath, VersionQuery, model_view::MlProblemType};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

names! {
    /// Type of the values of a feature.
    pub MlFeatureType = FeatureType::ALL.map(FeatureType::as_str);
}

output! {
    /// Result of a training.
    #[derive(Clone, Debug)]
    pub struct ResultView as "TrainingResult" {
        /// The version.
        version_number: u32,
        /// Kind of value that it predicts.
        problem_type: MlProblemType,
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
}

output! {
    /// Value of a metric.
    #[derive(Clone, Debug)]
    pub struct MetricView as "Metric" from metric: Metric {
        /// Its value.
        value: f64 = metric.value,
        /// True if a greater value is better.
        higher_is_better: bool = metric.higher_is_better,
    }
}

output! {
    /// Model that was tried. Scores are null where unknown.
    #[derive(Clone, Debug)]
    pub struct LeaderboardEntryView as "LeaderboardEntry" from entry: LeaderboardEntry {
        /// Name of the model.
        model: String = entry.model,
        /// Score on held-out rows.
        score: Option<f64> = entry.score,
        /// Score on validation rows.
        validation_score: Option<f64> = entry.validation_score,
        /// Time of its training in seconds.
        fit_seconds: Option<f64> = entry.fit_seconds,
        /// Time of its predictions in seconds.
        predict_seconds: Option<f64> = entry.predict_seconds,
    }
}

output! {
    /// Importance of a feature.
    #[derive(Clone, Debug)]
    pub struct FeatureImportanceView as "FeatureImportance" from measured: FeatureImportance {
        /// Name of the feature.
        feature: String = measured.feature,
        /// Loss of score when the feature's values are shuffled.
        importance: Option<f64> = measured.importance,
        /// Standard deviation of the importance.
        stddev: Option<f64> = measured.stddev,
    }
}

output! {
    /// Numbers of rows by actual and predicted class.
    #[derive(Clone, Debug)]
    pub struct ConfusionMatrixView as "ConfusionMatrix" from matrix: ConfusionMatrix {
        /// The classes, in the order of rows and columns.
        labels: Vec<Value> = values(matrix.labels),
        /// A list per actual class with a number per predicted class.
        counts: Vec<Vec<u64>> = matrix.counts,
    }
}

output! {
    /// Actual and predicted value of a row.
    #[derive(Clone, Debug)]
    pub struct ResidualView as "Residual" from residual: Residual {
        /// The value in the dataset.
        actual: f64 = residual.actual,
        /// The predicted value.
        predicted: f64 = residual.predicted,
    }
}

output! {
    /// Numbers of rows.
    #[derive(Clone, Debug)]
    pub struct RowCountsView as "RowCounts" from rows: RowCounts {
        /// Rows that the model learned from.
        train: u64 = rows.train,
        /// Held-out rows.
        test: u64 = rows.test,
    }
}

output! {
    /// Column that a model reads.
    #[derive(Clone, Debug)]
    pub struct FeatureView as "ModelFeature" from feature: ModelFeature {
        /// Name of the column.
        name: String = feature.name,
        /// Type of its values.
        data_type: MlFeatureType = feature.data_type.as_str().into(),
        /// True if rows that the model learned from have no value.
        nullable: bool = feature.nullable,
        /// The distinct values of a text column with at most 50.
        levels: Option<Vec<String>> = feature.levels,
    }
}

fn values(classes: Vec<Class>) -> Vec<Value> {
    let value = |class| match class {
        Class::Boolean(value) => value.into(),
        Class::Integer(value) => value.into(),
        Class::Float(value) => value.into(),
        Class::Text(value) => value.into(),
    };
    classes.into_iter().map(value).collect()
}

fn views<T, V: From<T>>(items: Vec<T>) -> Vec<V> {
    items.into_iter().map(Into::into).collect()
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_ml_model_results",
        method: Method::Get,
        path: "/api/v1/ml-models/{ml_model_id}/results",
        tag: Tag::MlModels,
        summary: "Reads the result of a training",
        description: "Metrics, leaderboard, importance of features, confusion matrix or residuals: those of \
            the active version, unless `version_number` names another.",
        returns: "The result",
        refusals: &[(400, "The version is not ready")],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, VersionQuery, ModelPath>) -> Result<ResultView, Error> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let number = call.query.number()?;
    let (version, result) = get_result(&call.services, &call.actor, id, number).await?;
    let metrics = result.metrics.into_iter();
    Ok(ResultView {
        version_number: version.number,
        problem_type: result.problem_type.as_str().into(),
        classes: result.classes.map(values),
        metrics: metrics
            .map(|(name, metric)| (name, metric.into()))
            .collect(),
        primary_metric: result.primary_metric,
        leaderboard: views(result.leaderboard),
        feature_importance: result.feature_importance.map(views),
        confusion_matrix: result.confusion_matrix.map(Into::into),
        residuals: result.residuals.map(views),
        rows: result.rows.into(),
        features: views(result.features),
        versions: result.versions,
    })
}
