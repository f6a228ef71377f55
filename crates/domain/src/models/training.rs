//! Checks of a training before it is queued.

use std::collections::BTreeSet;

use super::{Dataset, DatasetColumn, ProblemType, QualityPreset, TaskType};
use crate::{numbers::grouped, scalar::DataType};

/// Maximum number of distinct integers in a target that is inferred to hold classes. More are taken
/// for measurements.
pub const MAX_INTEGER_CLASSES: u64 = 20;

/// Training as a client requests it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrainingRequest {
    /// Column to predict.
    pub target: String,
    /// Columns to learn from; all that can be used if absent.
    pub features: Option<Vec<String>>,
    /// Columns that hold ids of image files.
    pub images: Vec<String>,
    /// Kind of input; inferred if absent.
    pub task: Option<TaskType>,
    /// Kind of value to predict; inferred if absent.
    pub problem: Option<ProblemType>,
    /// Quality of the model.
    pub preset: QualityPreset,
}

/// Training that can be queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingPlan {
    /// Column to predict.
    pub target: String,
    /// Columns to learn from, in the dataset's order.
    pub features: Vec<String>,
    /// Columns that hold ids of image files.
    pub images: Vec<String>,
    /// Kind of input.
    pub task: TaskType,
    /// Kind of value to predict.
    pub problem: ProblemType,
    /// Quality of the model.
    pub preset: QualityPreset,
}

/// Problem of a requested training.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTraining {
    /// The dataset lacks a column.
    #[error("{field} \"{column}\": the dataset has no such column")]
    NoSuchColumn {
        /// Field of the request.
        field: &'static str,
        /// Name given.
        column: String,
    },
    /// A column is named twice.
    #[error("column \"{0}\" is named more than once in target, features and images")]
    NamedTwice(String),
    /// A model cannot learn from, or predict, a column of the type.
    #[error("{field} \"{column}\": a model cannot use a column of type {data_type}")]
    UnusableType {
        /// Field of the request.
        field: &'static str,
        /// Name of the column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// An image column does not hold ids of files.
    #[error("image_columns \"{column}\": ids of files are texts or UUIDs, not {data_type}")]
    NotFiles {
        /// Name of the column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// Images were given to a task without images.
    #[error("image_columns need task_type \"multimodal\" or \"segmentation\"")]
    ImagesOfTabular,
    /// Segmentation needs one image column, and nothing else.
    #[error(
        "task_type \"segmentation\" learns from exactly one image column and no feature columns; \
         the target column holds the ids of the mask files"
    )]
    InputOfSegmentation,
    /// Segmentation and only segmentation predicts pixels.
    #[error(
        "problem_type \"semantic_segmentation\" belongs to task_type \"segmentation\" and to no other"
    )]
    SegmentationElsewhere,
    /// There is nothing to learn from.
    #[error("no column is left to learn from: the dataset needs one besides the target")]
    NoFeatures,
    /// The target has too many values for two classes.
    #[error(
        "problem_type \"binary\" needs a target with two values; \"{column}\" has {}",
        count(*distinct)
    )]
    NotBinary {
        /// Name of the target.
        column: String,
        /// Number of its distinct values, if counted.
        distinct: Option<u64>,
    },
    /// The target is no number.
    #[error(
        "problem_type \"regression\" needs a numeric target; \"{column}\" has type {data_type}"
    )]
    NotNumeric {
        /// Name of the target.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// The dataset has no rows.
    #[error("the dataset has no rows")]
    NoRows,
}

fn count(distinct: Option<u64>) -> String {
    match distinct.and_then(|count| usize::try_from(count).ok()) {
        Some(count) => grouped(count),
        None => format!("more than {}", grouped(super::MAX_COUNTED_VALUES)),
    }
}

impl TrainingRequest {
    /// Checks the request against its dataset, and infers what it leaves open.
    ///
    /// # Errors
    /// All problems, in the order of the request's fields.
    pub fn plan(self, dataset: &Dataset) -> Result<TrainingPlan, Vec<InvalidTraining>> {
        let mut problems = Vec::new();
        if dataset.row_count == 0 {
            problems.push(InvalidTraining::NoRows);
        }
        let task = self.task.unwrap_or(if self.images.is_empty() {
            TaskType::Tabular
        } else {
            TaskType::Multimodal
        });
        let target = find(dataset, "target_column", &self.target, &mut problems);
        let features = self.features(dataset, task, &mut problems);
        self.check_images(dataset, task, &mut problems);
        self.check_names(&mut problems);
        let problem = target.and_then(|target| self.problem_of(target, task, &mut problems));
        match problem {
            Some(problem) if problems.is_empty() => Ok(TrainingPlan {
                target: self.target,
                features,
                images: self.images,
                task,
                problem,
                preset: self.preset,
            }),
            _ => Err(problems),
        }
    }

    /// Returns the columns to learn from besides images.
    fn features(
        &self,
        dataset: &Dataset,
        task: TaskType,
        problems: &mut Vec<InvalidTraining>,
    ) -> Vec<String> {
        if task == TaskType::Segmentation {
            if self.images.len() != 1 || self.features.as_ref().is_some_and(|f| !f.is_empty()) {
                problems.push(InvalidTraining::InputOfSegmentation);
            }
            return Vec::new();
        }
        for name in self.features.iter().flatten() {
            let column = find(dataset, "feature_columns", name, problems);
            if let Some(column) = column.filter(|column| !can_be_feature(column)) {
                problems.push(unusable("feature_columns", column));
            }
        }
        let is_chosen = |column: &&DatasetColumn| match &self.features {
            Some(names) => names.contains(&column.name),
            None => {
                can_be_feature(column)
                    && column.name != self.target
                    && !self.images.contains(&column.name)
            }
        };
        let chosen = dataset.columns.iter().filter(is_chosen);
        let features: Vec<String> = chosen.map(|column| column.name.clone()).collect();
        let is_named = self
            .features
            .as_ref()
            .is_some_and(|names| !names.is_empty());
        if features.is_empty() && self.images.is_empty() && !is_named {
            problems.push(InvalidTraining::NoFeatures);
        }
        features
    }

    fn check_images(&self, dataset: &Dataset, task: TaskType, problems: &mut Vec<InvalidTraining>) {
        if task == TaskType::Tabular && !self.images.is_empty() {
            problems.push(InvalidTraining::ImagesOfTabular);
        }
        for name in &self.images {
            let column = find(dataset, "image_columns", name, problems);
            if let Some(column) = column.filter(|column| !can_hold_files(column)) {
                problems.push(InvalidTraining::NotFiles {
                    column: column.name.clone(),
                    data_type: column.data_type,
                });
            }
        }
    }

    fn check_names(&self, problems: &mut Vec<InvalidTraining>) {
        let mut seen = BTreeSet::from([&self.target]);
        let mut repeated = BTreeSet::new();
        for name in self.features.iter().flatten().chain(&self.images) {
            if !seen.insert(name) && repeated.insert(name) {
                problems.push(InvalidTraining::NamedTwice(name.clone()));
            }
        }
    }

    /// Returns the kind of value to predict; `None` after a problem.
    fn problem_of(
        &self,
        target: &DatasetColumn,
        task: TaskType,
        problems: &mut Vec<InvalidTraining>,
    ) -> Option<ProblemType> {
        let is_pixels = self.problem == Some(ProblemType::SemanticSegmentation);
        if task == TaskType::Segmentation {
            if self.problem.is_some() && !is_pixels {
                problems.push(InvalidTraining::SegmentationElsewhere);
            }
            if !can_hold_files(target) {
                problems.push(unusable("target_column", target));
            }
            return Some(ProblemType::SemanticSegmentation);
        }
        let refusal = match self.problem {
            None => match inferred(target) {
                Some(problem) => return Some(problem),
                None => unusable("target_column", target),
            },
            Some(ProblemType::SemanticSegmentation) => InvalidTraining::SegmentationElsewhere,
            Some(_) if inferred(target).is_none() => unusable("target_column", target),
            Some(ProblemType::Binary) if !has_two_values(target) => InvalidTraining::NotBinary {
                column: target.name.clone(),
                distinct: target.profile.distinct,
            },
            Some(ProblemType::Regression) if !is_numeric(target) => InvalidTraining::NotNumeric {
                column: target.name.clone(),
                data_type: target.data_type,
            },
            Some(problem) => return Some(problem),
        };
        problems.push(refusal);
        None
    }
}

fn find<'d>(
    dataset: &'d Dataset,
    field: &'static str,
    name: &str,
    problems: &mut Vec<InvalidTraining>,
) -> Option<&'d DatasetColumn> {
    let column = dataset.column(name);
    if column.is_none() {
        problems.push(InvalidTraining::NoSuchColumn {
            field,
            column: name.to_owned(),
        });
    }
    column
}

fn unusable(field: &'static str, column: &DatasetColumn) -> InvalidTraining {
    InvalidTraining::UnusableType {
        field,
        column: column.name.clone(),
        data_type: column.data_type,
    }
}

fn can_be_feature(column: &DatasetColumn) -> bool {
    column.data_type != DataType::Json
}

fn can_hold_files(column: &DatasetColumn) -> bool {
    matches!(
        column.data_type,
        DataType::String | DataType::Text | DataType::Uuid
    )
}

fn is_numeric(column: &DatasetColumn) -> bool {
    matches!(column.data_type, DataType::Integer | DataType::Float)
}

/// A constant column passes: its training fails and says so.
fn has_two_values(column: &DatasetColumn) -> bool {
    column.data_type == DataType::Boolean || column.profile.distinct.is_some_and(|count| count <= 2)
}

/// Infers the problem type from a target (contract §8): two values are binary, texts and few integers
/// multiclass, other numbers regression. `None` for types that nothing predicts.
fn inferred(target: &DatasetColumn) -> Option<ProblemType> {
    let distinct = target.profile.distinct;
    match target.data_type {
        DataType::Json | DataType::Date | DataType::Datetime => None,
        DataType::Boolean => Some(ProblemType::Binary),
        _ if distinct == Some(2) => Some(ProblemType::Binary),
        DataType::String | DataType::Text | DataType::Uuid => Some(ProblemType::Multiclass),
        DataType::Integer if distinct.is_some_and(|count| count <= MAX_INTEGER_CLASSES) => {
            Some(ProblemType::Multiclass)
        }
        DataType::Integer | DataType::Float => Some(ProblemType::Regression),
    }
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;
    use crate::{
        files::ObjectKey,
        ids::{DatasetId, UserId},
        models::{ColumnProfile, DatasetSource},
    };

    fn column(name: &str, data_type: DataType, distinct: Option<u64>) -> DatasetColumn {
        DatasetColumn {
            name: name.to_owned(),
            data_type,
            profile: ColumnProfile { nulls: 0, distinct },
        }
    }

    fn dataset() -> Dataset {
        Dataset {
            id: DatasetId::new(Uuid::from_u128(1)),
            name: "wines".to_owned(),
            description: None,
            columns: vec![
                column("alcohol", DataType::Float, None),
                column("cultivar", DataType::Integer, Some(3)),
                column("serial", DataType::Integer, Some(178)),
                column("is_red", DataType::Boolean, Some(1)),
                column("region", DataType::String, Some(2)),
                column("maker", DataType::Text, None),
                column("label", DataType::Uuid, None),
                column("bottled", DataType::Date, Some(9)),
                column("notes", DataType::Json, None),
            ],
            row_count: 178,
            source: DatasetSource::Query("SELECT * FROM wine".to_owned()),
            object: ObjectKey::new(Uuid::from_u128(2)),
            size: 9_000,
            created_by: UserId::new(Uuid::from_u128(3)),
            created_at: OffsetDateTime::UNIX_EPOCH,
        }
    }

    fn request(target: &str) -> TrainingRequest {
        TrainingRequest {
            target: target.to_owned(),
            ..TrainingRequest::default()
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn problem(target: &str) -> Option<ProblemType> {
        request(target)
            .plan(&dataset())
            .ok()
            .map(|plan| plan.problem)
    }

    fn refusals(request: TrainingRequest) -> Vec<String> {
        let problems = request.plan(&dataset()).expect_err("a refusal");
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_problem_type_follows_from_the_target() {
        assert_eq!(problem("is_red"), Some(ProblemType::Binary));
        assert_eq!(problem("region"), Some(ProblemType::Binary));
        assert_eq!(problem("cultivar"), Some(ProblemType::Multiclass));
        assert_eq!(problem("maker"), Some(ProblemType::Multiclass));
        assert_eq!(problem("serial"), Some(ProblemType::Regression));
        assert_eq!(problem("alcohol"), Some(ProblemType::Regression));
    }

    #[test]
    fn times_and_json_are_not_predicted() {
        for problem in [None, Some(ProblemType::Multiclass)] {
            for (target, data_type) in [("bottled", "date"), ("notes", "json")] {
                let asked = TrainingRequest {
                    problem,
                    ..request(target)
                };
                let expected = format!(
                    "target_column \"{target}\": a model cannot use a column of type {data_type}"
                );
                assert_eq!(refusals(asked), [expected]);
            }
        }
    }

    #[test]
    fn a_given_problem_type_must_fit_the_target() {
        let asked = |target, problem| TrainingRequest {
            problem: Some(problem),
            ..request(target)
        };
        assert_eq!(
            refusals(asked("cultivar", ProblemType::Binary)),
            ["problem_type \"binary\" needs a target with two values; \"cultivar\" has 3"]
        );
        assert_eq!(
            refusals(asked("maker", ProblemType::Binary)),
            [
                "problem_type \"binary\" needs a target with two values; \"maker\" has more than 1,000"
            ]
        );
        assert_eq!(
            refusals(asked("region", ProblemType::Regression)),
            ["problem_type \"regression\" needs a numeric target; \"region\" has type string"]
        );
        let pixels = refusals(asked("region", ProblemType::SemanticSegmentation));
        assert_eq!(pixels, [InvalidTraining::SegmentationElsewhere.to_string()]);
        for (target, problem) in [
            ("cultivar", ProblemType::Regression),
            ("is_red", ProblemType::Binary),
            ("is_red", ProblemType::Multiclass),
        ] {
            let plan = asked(target, problem).plan(&dataset()).expect("it fits");
            assert_eq!(plan.problem, problem);
        }
    }

    #[test]
    fn all_columns_that_can_be_used_are_features_unless_some_are_named() {
        let plan = request("cultivar").plan(&dataset()).expect("a plan");
        assert_eq!(
            plan.features,
            names(&[
                "alcohol", "serial", "is_red", "region", "maker", "label", "bottled"
            ])
        );
        let chosen = TrainingRequest {
            features: Some(names(&["region", "alcohol"])),
            ..request("cultivar")
        };
        let plan = chosen.plan(&dataset()).expect("a plan");
        assert_eq!(plan.features, names(&["alcohol", "region"]));
        assert_eq!(plan.task, TaskType::Tabular);
    }

    #[test]
    fn every_problem_of_the_columns_is_reported() {
        let asked = TrainingRequest {
            features: Some(names(&["alcohol", "acid", "notes", "alcohol", "cultivar"])),
            ..request("cultivar")
        };
        assert_eq!(
            refusals(asked),
            [
                "feature_columns \"acid\": the dataset has no such column",
                "feature_columns \"notes\": a model cannot use a column of type json",
                "column \"alcohol\" is named more than once in target, features and images",
                "column \"cultivar\" is named more than once in target, features and images",
            ]
        );
        assert_eq!(
            refusals(request("price")),
            ["target_column \"price\": the dataset has no such column"]
        );
    }

    #[test]
    fn a_model_learns_from_something() {
        let none = TrainingRequest {
            features: Some(Vec::new()),
            ..request("cultivar")
        };
        assert_eq!(refusals(none), [InvalidTraining::NoFeatures.to_string()]);
        let lonely = Dataset {
            columns: vec![column("cultivar", DataType::Integer, Some(3))],
            row_count: 0,
            ..dataset()
        };
        let problems = request("cultivar").plan(&lonely).expect_err("a refusal");
        assert_eq!(
            problems,
            [InvalidTraining::NoRows, InvalidTraining::NoFeatures]
        );
    }

    #[test]
    fn images_make_a_training_multimodal() {
        let asked = TrainingRequest {
            images: names(&["label"]),
            ..request("cultivar")
        };
        let plan = asked.clone().plan(&dataset()).expect("a plan");
        assert_eq!(plan.task, TaskType::Multimodal);
        assert!(!plan.features.contains(&"label".to_owned()));
        let tabular = TrainingRequest {
            task: Some(TaskType::Tabular),
            ..asked.clone()
        };
        assert_eq!(
            refusals(tabular),
            [InvalidTraining::ImagesOfTabular.to_string()]
        );
        let numbers = TrainingRequest {
            images: names(&["alcohol"]),
            ..asked
        };
        assert_eq!(
            refusals(numbers),
            ["image_columns \"alcohol\": ids of files are texts or UUIDs, not float"]
        );
    }

    #[test]
    fn segmentation_learns_from_one_image_and_predicts_masks() {
        let asked = TrainingRequest {
            task: Some(TaskType::Segmentation),
            images: names(&["label"]),
            ..request("maker")
        };
        let plan = asked.clone().plan(&dataset()).expect("a plan");
        assert_eq!(plan.problem, ProblemType::SemanticSegmentation);
        assert_eq!(plan.features, names(&[]));
        let without = TrainingRequest {
            images: Vec::new(),
            ..asked.clone()
        };
        assert_eq!(
            refusals(without),
            [InvalidTraining::InputOfSegmentation.to_string()]
        );
        let with_features = TrainingRequest {
            features: Some(names(&["alcohol"])),
            ..asked.clone()
        };
        assert_eq!(
            refusals(with_features),
            [InvalidTraining::InputOfSegmentation.to_string()]
        );
        let other = TrainingRequest {
            problem: Some(ProblemType::Binary),
            target: "alcohol".to_owned(),
            ..asked
        };
        assert_eq!(
            refusals(other),
            [
                InvalidTraining::SegmentationElsewhere.to_string(),
                "target_column \"alcohol\": a model cannot use a column of type float".to_owned(),
            ]
        );
    }
}
