//! Report of a trained model: one HTML page without scripts that needs no other file.

mod charts;
mod figures;

#[cfg(test)]
mod tests;

use std::fmt::Write;

use time::OffsetDateTime;

use self::{
    charts::{confusion, residuals},
    figures::{counted, display, displayed_seconds},
};
use super::{Dataset, Metric, ModelVersion, ProblemType, TrainingResult};
use crate::html::escaped;

/// Number of features that the page compares.
const FEATURES: usize = 25;

/// Number of models of the leaderboard on the page.
const MODELS: usize = 50;

/// Number of features and programs that the page lists.
const LISTED: usize = 200;

const STYLE: &str = include_str!("style.css");

/// Renders the report of a ready version. Every text is escaped: names come from users, and the result
/// from the trainer. The dataset is left out if the reader may not see it.
#[must_use]
pub fn report_page(
    version: &ModelVersion,
    dataset: Option<&Dataset>,
    result: &TrainingResult,
) -> String {
    let name = escaped(&version.name);
    let number = version.number;
    let activity = if version.is_active {
        "active"
    } else {
        "not active"
    };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{name}, version {number}</title>\n<style>\n{STYLE}</style></head>\n<body>\n\
         <h1>{name}</h1>\n<p class=\"soft\">Version {number} · {activity} · predicts {} ({})</p>\n",
        escaped(&version.plan.target),
        problem(result.problem_type),
    );
    if let Some(description) = &version.description {
        add(&mut page, format_args!("<p>{}</p>\n", escaped(description)));
    }
    metrics(&mut page, result);
    facts(&mut page, version, dataset, result);
    if let Some(matrix) = &result.confusion_matrix {
        page.push_str("<h2>Confusion matrix</h2>\n");
        page.push_str(
            "<p class=\"soft\">Held-out rows by actual and predicted class. The stronger a cell's color, \
             the larger its share of the actual class.</p>\n",
        );
        page.push_str(&confusion(matrix));
    }
    if let Some(pairs) = &result.residuals {
        page.push_str("<h2>Predicted and actual values</h2>\n");
        page.push_str(
            "<p class=\"soft\">Held-out rows. On the dashed line a prediction is exact.</p>\n",
        );
        page.push_str(&residuals(pairs));
    }
    importance(&mut page, result);
    leaderboard(&mut page, result);
    features(&mut page, result);
    versions(&mut page, result);
    if let Some(artifact) = &version.artifact {
        add(
            &mut page,
            format_args!(
                "<footer>Artifact: {} bytes, SHA-256 {}</footer>\n",
                counted(artifact.size),
                artifact.sha256_hex()
            ),
        );
    }
    page.push_str("</body></html>\n");
    page
}

/// Adds to a page.
fn add(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = page.write_fmt(text);
}

/// Describes a problem type for people.
const fn problem(problem: ProblemType) -> &'static str {
    match problem {
        ProblemType::Binary => "one of two classes",
        ProblemType::Multiclass => "one of several classes",
        ProblemType::Regression => "a number",
        ProblemType::SemanticSegmentation => "a class for each pixel",
    }
}

/// Turns `root_mean_squared_error` into words.
fn words(name: &str) -> String {
    escaped(&name.replace('_', " "))
}

fn metrics(page: &mut String, result: &TrainingResult) {
    let is_primary = |name: &String| *name == result.primary_metric;
    let mut metrics: Vec<_> = result.metrics.iter().collect();
    // Stable, and `false` sorts first: the primary metric leads, the rest stay in order.
    metrics.sort_by_key(|(name, _)| !is_primary(name));
    page.push_str("<ul class=\"metrics\">\n");
    for (name, metric) in metrics {
        let class = if is_primary(name) {
            " class=\"primary\""
        } else {
            ""
        };
        add(
            page,
            format_args!(
                "<li{class}>{}<strong>{}</strong><small>{}</small></li>\n",
                words(name),
                display(metric.value),
                direction(metric)
            ),
        );
    }
    page.push_str("</ul>\n");
}

/// Says which of two values is better.
const fn direction(metric: &Metric) -> &'static str {
    if metric.higher_is_better {
        "higher is better"
    } else {
        "lower is better"
    }
}

fn facts(
    page: &mut String,
    version: &ModelVersion,
    dataset: Option<&Dataset>,
    result: &TrainingResult,
) {
    let time = |at: Option<OffsetDateTime>| at.map(readable);
    let (started, completed) = (version.state.started_at(), version.state.completed_at());
    let duration = match (started, completed) {
        (Some(started), Some(completed)) => {
            Some(displayed_seconds((completed - started).as_seconds_f64()))
        }
        _ => None,
    };
    let rows = format!(
        "{} to learn from, {} held out to measure",
        counted(result.rows.train),
        counted(result.rows.test)
    );
    let features = if result.features.is_empty() {
        None
    } else {
        Some(result.features.len().to_string())
    };
    let facts = [
        (
            "Dataset",
            dataset.map(|dataset| {
                let rows = counted(dataset.row_count);
                format!("{} ({rows} rows)", escaped(&dataset.name))
            }),
        ),
        ("Rows", Some(rows)),
        ("Target", Some(escaped(&version.plan.target))),
        ("Columns that it reads", features),
        ("Task", Some(version.plan.task.as_str().to_owned())),
        ("Quality preset", Some(words(version.plan.preset.as_str()))),
        ("Trained", time(completed)),
        ("Duration", duration),
    ];
    page.push_str("<h2>Training</h2>\n<dl>\n");
    for (name, fact) in facts {
        if let Some(fact) = fact {
            add(page, format_args!("<dt>{name}</dt><dd>{fact}</dd>\n"));
        }
    }
    page.push_str("</dl>\n");
}

/// A time to the minute.
fn readable(at: OffsetDateTime) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    format!(
        "{} {:02}:{:02} UTC",
        crate::timestamp::render_date(at.date()),
        at.hour(),
        at.minute()
    )
}

fn importance(page: &mut String, result: &TrainingResult) {
    let Some(features) = &result.feature_importance else {
        return;
    };
    let measured: Vec<(&str, f64)> = features
        .iter()
        .filter_map(|it| Some((it.feature.as_str(), it.importance?)))
        .take(FEATURES)
        .collect();
    let largest = measured
        .iter()
        .map(|(_, importance)| importance.abs())
        .fold(0.0, f64::max);
    // Bars are relative to the largest one.
    if largest <= 0.0 || !largest.is_finite() {
        return;
    }
    page.push_str(
        "<h2>Importance of features</h2>\n<p class=\"soft\">Loss of score when the values of a column are \
         shuffled.</p>\n<ul class=\"bars\">\n",
    );
    for (feature, importance) in measured {
        let width = importance.abs() / largest * 100.0;
        // The model scored better with the values of this column shuffled.
        let class = if importance < 0.0 {
            " class=\"negative\""
        } else {
            ""
        };
        add(
            page,
            format_args!(
                "<li><span>{}</span><i{class} style=\"width:{width:.1}%\"></i><b>{}</b></li>\n",
                escaped(feature),
                display(importance)
            ),
        );
    }
    page.push_str("</ul>\n");
    more(page, features.len(), FEATURES, "features");
}

fn leaderboard(page: &mut String, result: &TrainingResult) {
    if result.leaderboard.is_empty() {
        return;
    }
    page.push_str("<h2>Models that were tried</h2>\n");
    if let Some(metric) = result.metrics.get(&result.primary_metric) {
        add(
            page,
            format_args!(
                "<p class=\"soft\">Scores are the {}: {}.</p>\n",
                words(&result.primary_metric),
                direction(metric)
            ),
        );
    }
    page.push_str(
        "<div class=\"wide\"><table>\n<tr><th>Model</th>\
         <th class=\"number\">Score</th><th class=\"number\">Validation</th>\
         <th class=\"number\">Fit</th><th class=\"number\">Predict</th></tr>\n",
    );
    let score = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), display);
    let seconds = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), displayed_seconds);
    for entry in result.leaderboard.iter().take(MODELS) {
        add(
            page,
            format_args!(
                "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
                 <td class=\"number\">{}</td><td class=\"number\">{}</td></tr>\n",
                escaped(&entry.model),
                score(entry.score),
                score(entry.validation_score),
                seconds(entry.fit_seconds),
                seconds(entry.predict_seconds)
            ),
        );
    }
    page.push_str("</table></div>\n");
    more(page, result.leaderboard.len(), MODELS, "models");
}

fn features(page: &mut String, result: &TrainingResult) {
    if result.features.is_empty() {
        return;
    }
    page.push_str(
        "<details><summary>Columns that the model reads</summary>\n<div class=\"wide\"><table>\n\
         <tr><th>Column</th><th>Type</th><th>May be empty</th></tr>\n",
    );
    for feature in result.features.iter().take(LISTED) {
        let nullable = if feature.nullable { "yes" } else { "no" };
        add(
            page,
            format_args!(
                "<tr><td>{}</td><td>{}</td><td>{nullable}</td></tr>\n",
                escaped(&feature.name),
                feature.data_type.as_str()
            ),
        );
    }
    page.push_str("</table></div>\n");
    more(page, result.features.len(), LISTED, "columns");
    page.push_str("</details>\n");
}

fn versions(page: &mut String, result: &TrainingResult) {
    if result.versions.is_empty() {
        return;
    }
    page.push_str("<details><summary>Programs that trained it</summary>\n<dl>\n");
    for (program, version) in &result.versions {
        add(
            page,
            format_args!(
                "<dt>{}</dt><dd>{}</dd>\n",
                escaped(program),
                escaped(version)
            ),
        );
    }
    page.push_str("</dl></details>\n");
}

/// Counts what the page leaves out.
fn more(page: &mut String, of: usize, listed: usize, what: &str) {
    if of > listed {
        add(
            page,
            format_args!("<p class=\"soft\">and {} more {what}</p>\n", of - listed),
        );
    }
}
