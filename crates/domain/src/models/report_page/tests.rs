use std::collections::BTreeSet;

use time::Duration;
use uuid::Uuid;

use super::*;
use crate::{
    files::ObjectKey,
    ids::{DatasetId, ModelId, ModelVersionId, UserId},
    models::{
        Artifact, Class, ConfusionMatrix, DatasetSource, FeatureImportance, LeaderboardEntry,
        NewModel, NewVersion, QualityPreset, Residual, TaskType, TrainingPlan, VersionState,
        result::tests::result,
    },
};

const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

/// A text that would be markup anywhere on the page.
const HOSTILE: &str = "</style></title><script>alert(1)</script><img src=x onerror='a'>\"&";

fn version(name: &str) -> ModelVersion {
    let model = NewModel {
        id: ModelId::new(Uuid::from_u128(1)),
        name: name.to_owned(),
    };
    let new = NewVersion {
        id: ModelVersionId::new(Uuid::from_u128(2)),
        description: Some(name.to_owned()),
        dataset: DatasetId::new(Uuid::from_u128(3)),
        plan: TrainingPlan {
            target: name.to_owned(),
            features: Vec::new(),
            images: Vec::new(),
            task: TaskType::Tabular,
            problem: ProblemType::Multiclass,
            preset: QualityPreset::Medium,
        },
        requested_by: UserId::new(Uuid::from_u128(4)),
        requested_at: NOW,
    };
    ModelVersion {
        state: VersionState::Ready {
            started_at: NOW,
            completed_at: NOW + Duration::seconds(42),
        },
        artifact: Some(Artifact {
            object: ObjectKey::new(Uuid::from_u128(5)),
            sha256: [0xab; 32],
            size: 12_345,
        }),
        ..ModelVersion::queue(&model, 3, &new)
    }
}

fn dataset(name: &str) -> Dataset {
    Dataset {
        id: DatasetId::new(Uuid::from_u128(3)),
        name: name.to_owned(),
        description: None,
        columns: Vec::new(),
        row_count: 1_780,
        source: DatasetSource::Query(String::new()),
        tables: BTreeSet::new(),
        object: ObjectKey::new(Uuid::from_u128(6)),
        size: 1,
        created_by: UserId::new(Uuid::from_u128(4)),
        created_at: NOW,
    }
}

fn page(result: &TrainingResult) -> String {
    report_page(&version("wine"), Some(&dataset("wines")), result)
}

/// Counts the tags of a name.
fn tags(page: &str, name: &str) -> usize {
    page.matches(&format!("<{name}")).count()
}

#[test]
fn a_report_shows_model_dataset_metrics_and_models() {
    let page = page(&result());
    for part in [
        "<h1>wine</h1>",
        "Version 3 · not active · predicts wine (one of several classes)",
        "wines (1,780 rows)",
        "142 to learn from, 36 held out to measure",
        "<li class=\"primary\">accuracy<strong>0.97</strong><small>higher is better</small></li>",
        "Scores are the accuracy: higher is better.",
        "medium quality",
        "1970-01-01 00:00 UTC",
        "<dd>42 s</dd>",
        "<td>LightGBM</td>",
        "12,345 bytes, SHA-256 abab",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_version_that_is_active_says_so_once() {
    let mut version = version("wine");
    version.is_active = true;
    let page = report_page(&version, None, &result());
    assert!(
        page.contains("Version 3 · active · predicts wine"),
        "{page}"
    );
}

#[test]
fn a_page_needs_no_script_and_no_other_file() {
    let page = page(&result());
    for forbidden in [
        "<script", "src=", "href=", "url(", "@import", "http", " onload",
    ] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn no_text_of_a_user_or_the_trainer_becomes_markup() {
    let text = || HOSTILE.to_owned();
    let mut hostile = result();
    let metric = hostile.metrics["accuracy"];
    hostile.metrics.insert(text(), metric);
    hostile.primary_metric = text();
    hostile.classes = Some(vec![Class::Text(text())]);
    hostile.leaderboard[0].model = text();
    hostile.versions.insert(text(), text());
    for feature in &mut hostile.features {
        feature.name = text();
    }
    hostile.feature_importance = Some(vec![FeatureImportance {
        feature: text(),
        importance: Some(0.5),
        stddev: None,
    }]);
    hostile.confusion_matrix = Some(ConfusionMatrix {
        labels: vec![Class::Text(text()), Class::Text("<b>".to_owned())],
        counts: vec![vec![3, 1], vec![0, 2]],
    });
    let page = report_page(&version(HOSTILE), Some(&dataset(HOSTILE)), &hostile);
    for tag in ["script", "img", "b>"] {
        // Values of bars are bold.
        let own = usize::from(tag == "b>");
        assert_eq!(tags(&page, tag), own, "{tag}");
    }
    assert_eq!(page.matches("</style>").count(), 1);
    assert_eq!(page.matches("</title></rect>").count(), 4);
    assert!(page.matches("&lt;script&gt;").count() > 9);
}

#[test]
fn a_confusion_matrix_is_a_heat_map() {
    let page = page(&result());
    assert_eq!(tags(&page, "rect"), 4);
    assert!(page.contains("actual 0, predicted 1: 1"), "{page}");
    // Of two classes, which are narrower than the words over them.
    assert!(page.contains("viewBox=\"0 0 260 244\""), "{page}");
    // A class without rows, and classes without end, are drawn too.
    let mut many = result();
    let labels = (0..100).map(Class::Integer).collect();
    many.confusion_matrix = Some(ConfusionMatrix {
        labels,
        counts: vec![vec![u64::MAX; 100]; 100],
    });
    assert_eq!(
        tags(
            &super::report_page(&version("x"), Some(&dataset("y")), &many),
            "rect"
        ),
        10_000
    );
}

#[test]
fn residuals_are_a_scatter_of_any_values() {
    let mut regression = result();
    regression.problem_type = ProblemType::Regression;
    regression.confusion_matrix = None;
    let pair = |actual, predicted| Residual { actual, predicted };
    for (pairs, points) in [
        (vec![pair(1.0, 1.5), pair(-3.0, 2.0)], 2),
        (vec![pair(7.0, 7.0)], 1),
        (vec![pair(0.0, 0.0)], 1),
        (vec![pair(1e-300, 2e-300)], 1),
        (vec![pair(1e15, 1e15 + 1.0)], 1),
        (vec![pair(f64::MAX, -f64::MAX)], 0),
        (Vec::new(), 0),
    ] {
        regression.residuals = Some(pairs);
        let page = page(&regression);
        assert_eq!(tags(&page, "circle"), points, "{page}");
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}

#[test]
fn long_lists_are_cut_and_counted() {
    let mut long = result();
    let entry = |number: usize| LeaderboardEntry {
        model: format!("model {number}"),
        score: None,
        validation_score: None,
        fit_seconds: None,
        predict_seconds: None,
    };
    long.leaderboard = (0..60).map(entry).collect();
    let page = page(&long);
    assert!(page.contains("and 10 more models"), "{page}");
    assert!(!page.contains("model 50<"));
}
