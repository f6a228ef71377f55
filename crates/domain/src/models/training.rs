//! Checks of a training before it is queued.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::{Dataset, DatasetColumn, ProblemType, QualityPreset, TaskType};
use crate::{
    numbers::grouped,
    refusal::{ErrorCode, Refuse},
    scalar::DataType,
};

/// Maximum number of distinct integers in a target that is inferred to hold classes. More are taken
/// for measurements.
pub const MAX_INTEGER_CLASSES: u64 = 20;

/// Minimum number of rows with a value in the target. The trainer leaves out rows without one.
pub const MIN_TRAINING_ROWS: u64 = 10;

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
    /// The request names no column to learn from.
    #[error("feature_columns is empty: name a column, or leave it out to learn from all columns")]
    NoFeaturesNamed,
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
    /// The target is null in every row.
    #[error("target_column \"{0}\": the column has no value in any row")]
    NoTargetValues(String),
    /// Fewer than [`MIN_TRAINING_ROWS`] rows have a value in the target.
    #[error(
        "target_column \"{column}\": the column has a value in {rows} rows; training needs at least \
         {MIN_TRAINING_ROWS}"
    )]
    TooFewRows {
        /// Name of the target.
        column: String,
        /// Number of rows with a value.
        rows: u64,
    },
    /// The target has one value.
    #[error(
        "target_column \"{0}\": every row has the same value; a model needs at least two different values"
    )]
    ConstantTarget(String),
}

impl Refuse for InvalidTraining {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidTraining
    }
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
        // A training is refused here rather than after minutes of preparation on a worker.
        if dataset.row_count == 0 {
            problems.push(InvalidTraining::NoRows);
        }
        let task = self.task.unwrap_or(if self.images.is_empty() {
            TaskType::Tabular
        } else {
            TaskType::Multimodal
        });
        let target = find(dataset, "target_column", &self.target, &mut problems);
        if let Some(target) = target {
            problems.extend(target_values(dataset, target, task));
        }
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
            // Features of a segmentation are the pixels, so a choice of columns means nothing.
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
            // By default without the target, which would predict itself, and without ids of images.
            None => {
                can_be_feature(column)
                    && column.name != self.target
                    && !self.images.contains(&column.name)
            }
        };
        // In the dataset's order, so that the same choice always makes the same plan.
        let chosen = dataset.columns.iter().filter(is_chosen);
        let features: Vec<String> = chosen.map(|column| column.name.clone()).collect();
        if features.is_empty() && self.images.is_empty() {
            match &self.features {
                None => problems.push(InvalidTraining::NoFeatures),
                Some(names) if names.is_empty() => problems.push(InvalidTraining::NoFeaturesNamed),
                // None of the named columns exists, which is reported already.
                Some(_) => {}
            }
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
            // A name that occurs three times is one problem.
            if !seen.insert(name) && repeated.insert(name) {
                problems.push(InvalidTraining::NamedTwice(name.clone()));
            }
        }
    }

    /// Returns the kind of value to predict; `None` where a problem leaves it open.
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
            // No other kind can be meant. The caller refuses by the problems, not by this value.
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
            Some(ProblemType::Regression) if !target.data_type.is_number() => {
                InvalidTraining::NotNumeric {
                    column: target.name.clone(),
                    data_type: target.data_type,
                }
            }
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

/// Checks the values of a target as the trainer does at its start, which is after minutes of preparation.
fn target_values(
    dataset: &Dataset,
    target: &DatasetColumn,
    task: TaskType,
) -> Option<InvalidTraining> {
    let rows = dataset.row_count.saturating_sub(target.profile.nulls);
    let column = || target.name.clone();
    match rows {
        // Reported as a dataset without rows.
        0 if dataset.row_count == 0 => None,
        0 => Some(InvalidTraining::NoTargetValues(column())),
        rows if rows < MIN_TRAINING_ROWS => Some(InvalidTraining::TooFewRows {
            column: column(),
            rows,
        }),
        // A mask may be that of several images.
        _ if task == TaskType::Segmentation => None,
        _ if target.profile.distinct == Some(1) => Some(InvalidTraining::ConstantTarget(column())),
        _ => None,
    }
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

/// A constant column passes: it is refused by itself ([`InvalidTraining::ConstantTarget`]).
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
        // Few distinct integers are usually codes of classes, not measurements.
        DataType::Integer if distinct.is_some_and(|count| count <= MAX_INTEGER_CLASSES) => {
            Some(ProblemType::Multiclass)
        }
        DataType::Integer | DataType::Float => Some(ProblemType::Regression),
    }
}
