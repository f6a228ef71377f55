//! Responses of a predictor. Its process runs code of the artifact, so they are untrusted: a response that
//! does not fit the model and the request is refused as a whole.

use std::fmt;

use super::{segmentation::PredictedMask, signature::ModelSignature};
use crate::models::{Class, ProblemType};

/// Response as a predictor gives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawPredictions {
    /// A value per row: a class, a number, or an image in base64.
    pub values: Vec<Option<Class>>,
    /// A list per class, in their order, with a probability per row.
    pub probabilities: Option<Vec<Vec<Option<f64>>>>,
    /// Of a segmentation, the masks of each row.
    pub masks: Option<Vec<Vec<PredictedMask>>>,
}

/// Predicted value.
#[derive(Clone, Debug, PartialEq)]
pub enum PredictedValue {
    /// Of a classification.
    Class(Class),
    /// Of a regression.
    Number(f64),
    /// Of a segmentation: a PNG image in base64, whose pixels are classes.
    Mask(String),
}

/// Response that fits the model and the request.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictions {
    /// A value per row; `None` where the model computes no number.
    pub values: Vec<Option<PredictedValue>>,
    /// The probability of each class; `None` unless the model classifies.
    pub probabilities: Option<ClassProbabilities>,
    /// The masks of each row; `None` unless the model segments images.
    pub masks: Option<Vec<Vec<PredictedMask>>>,
}

/// Probabilities of classes.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassProbabilities {
    /// The classes.
    pub classes: Vec<Class>,
    /// A list per class with a probability per row; `None` where the model computes none.
    pub columns: Vec<Vec<Option<f64>>>,
}

/// Error: a predictor's response does not fit the model or the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusablePredictions {
    /// The number of rows differs.
    #[error("a response has another number of rows than its request")]
    Rows,
    /// A value is none that the model predicts.
    #[error("a response has a value that the model cannot predict")]
    Value,
    /// Probabilities are missing, superfluous or not between 0 and 1.
    #[error("a response has wrong probabilities")]
    Probabilities,
    /// Masks are superfluous, or are none.
    #[error("a response has wrong masks")]
    Masks,
}

impl Predictions {
    /// Checks a response to a request with that number of rows.
    ///
    /// # Errors
    /// [`UnusablePredictions`].
    pub fn check(
        signature: &ModelSignature,
        rows: usize,
        raw: RawPredictions,
    ) -> Result<Self, UnusablePredictions> {
        // A missing row would shift all later predictions to other rows.
        if raw.values.len() != rows {
            return Err(UnusablePredictions::Rows);
        }
        // Reserved at once: `collect` into an option grows step by step.
        let mut values = Vec::with_capacity(rows);
        for value in raw.values {
            let value = match value {
                Some(value) => Some(signature.value(value).ok_or(UnusablePredictions::Value)?),
                None if signature.problem == ProblemType::Regression => None,
                // Classes and masks are always there.
                None => return Err(UnusablePredictions::Value),
            };
            values.push(value);
        }
        Ok(Self {
            values,
            probabilities: check_probabilities(signature, rows, raw.probabilities)?,
            masks: check_masks(signature, rows, raw.masks)?,
        })
    }
}

impl ModelSignature {
    /// Returns the value that the model predicts; `None` if it cannot.
    fn value(&self, value: Class) -> Option<PredictedValue> {
        match (self.problem, value) {
            (ProblemType::Regression, number) => {
                // JSON has neither NaN nor infinity.
                let number = number.number().filter(|number| number.is_finite());
                number.map(PredictedValue::Number)
            }
            (ProblemType::SemanticSegmentation, Class::Text(mask)) => {
                Some(PredictedValue::Mask(mask))
            }
            (ProblemType::Binary | ProblemType::Multiclass, value) => {
                let mut classes = self.classes.iter().flatten();
                let class = classes.find(|class| class.equals(&value))?;
                Some(PredictedValue::Class(class.clone()))
            }
            (ProblemType::SemanticSegmentation, _) => None,
        }
    }
}

/// Checks the masks. A response without them has none for any row.
fn check_masks(
    signature: &ModelSignature,
    rows: usize,
    masks: Option<Vec<Vec<PredictedMask>>>,
) -> Result<Option<Vec<Vec<PredictedMask>>>, UnusablePredictions> {
    let is_segmentation = signature.problem == ProblemType::SemanticSegmentation;
    match masks {
        None => Ok(is_segmentation.then(|| vec![Vec::new(); rows])),
        Some(masks)
            if is_segmentation
                && masks.len() == rows
                && masks.iter().flatten().all(PredictedMask::is_usable) =>
        {
            Ok(Some(masks))
        }
        Some(_) => Err(UnusablePredictions::Masks),
    }
}

/// Checks the probabilities. Without classes there are none.
fn check_probabilities(
    signature: &ModelSignature,
    rows: usize,
    columns: Option<Vec<Vec<Option<f64>>>>,
) -> Result<Option<ClassProbabilities>, UnusablePredictions> {
    // Sums have rounding errors.
    let is_probability = |number: &f64| (-1e-6..=1.0 + 1e-6).contains(number);
    let is_column = |column: &Vec<Option<f64>>| {
        column.len() == rows && column.iter().flatten().all(is_probability)
    };
    match (&signature.classes, columns) {
        (None, None) => Ok(None),
        (Some(classes), Some(columns))
            if columns.len() == classes.len() && columns.iter().all(is_column) =>
        {
            Ok(Some(ClassProbabilities {
                classes: classes.clone(),
                columns,
            }))
        }
        _ => Err(UnusablePredictions::Probabilities),
    }
}

impl Class {
    /// Returns true if both are the same class. Python distinguishes 1 from 1.0 by the type of a column.
    fn equals(&self, other: &Self) -> bool {
        match (self.number(), other.number()) {
            // pandas turns integers into floats where a column has nulls: 1 and 1.0 are one class.
            (Some(left), Some(right)) => left.total_cmp(&right).is_eq(),
            _ => self == other,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            #[expect(
                clippy::as_conversions,
                clippy::cast_precision_loss,
                reason = "both sides of a comparison are rounded alike"
            )]
            Self::Integer(number) => Some(*number as f64),
            // Zero has one sign.
            Self::Float(number) => Some(*number + 0.0),
            Self::Boolean(_) | Self::Text(_) => None,
        }
    }

    /// Returns true if a predictor's text names the class.
    #[must_use]
    pub fn is_named(&self, text: &str) -> bool {
        match self {
            Self::Boolean(flag) => text == if *flag { "true" } else { "false" },
            Self::Text(class) => text == class,
            // By value, since `1` and `1.0` name one class.
            Self::Integer(_) | Self::Float(_) => text.parse().ok() == self.number(),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(flag) => flag.fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}
