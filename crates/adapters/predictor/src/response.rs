//! Messages of a process, read as untrusted bytes.

use std::collections::BTreeMap;

use labdata_domain::{
    instruments::images::PixelSize,
    models::{
        Class, InvalidRows, MAX_PREDICTION_ROWS, ModelSignature, PredictedMask, ProblemType,
        RawPredictions, RowProblem,
    },
};
use serde::Deserialize;

use crate::{arrow, lists::ShortList};

/// Maximum length of a JSON message, in bytes, except with masks.
const MAX_JSON: usize = 8 << 20;

/// Maximum number of characters of a text that a process reports.
const MAX_TEXT: usize = 500;

/// Maximum number of problems in a message.
const MAX_PROBLEMS: usize = 100;

/// Maximum number of masks of a row: one for each class.
const MAX_MASKS: usize = 256;

/// Error: a message is none of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a predictor broke the protocol: {0}")]
pub(crate) struct BrokenProtocol(pub(crate) String);

/// First message of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// It responds requests from now on.
    Ready,
    /// It cannot, and ends.
    Failed {
        /// True if the model needs too much memory.
        is_memory: bool,
        /// Reason for the requester.
        message: String,
    },
}

/// Response to a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Response {
    /// The request's id.
    pub(crate) id: u64,
    /// The response itself.
    pub(crate) content: Content,
}

/// Content of a response.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// Predictions, which may still not fit the request.
    Predicted(RawPredictions),
    /// The model cannot read the rows.
    Rejected(InvalidRows),
    /// The model cannot predict the rows, for that reason.
    Refused(String),
}

#[derive(Deserialize)]
struct StartMessage {
    r#type: String,
    protocol: Option<u64>,
    code: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct ResponseMessage {
    id: Option<u64>,
    error: Option<ErrorMessage>,
    predictions: Option<ShortList<Option<Class>, MAX_PREDICTION_ROWS>>,
    probabilities: Option<ShortList<BTreeMap<String, Option<f64>>, MAX_PREDICTION_ROWS>>,
}

#[derive(Deserialize)]
struct MaskMessage {
    id: Option<u64>,
    error: Option<ErrorMessage>,
    predictions: Option<ShortList<String, MAX_PREDICTION_ROWS>>,
    masks: Option<ShortList<ShortList<PredictedMaskMessage, MAX_MASKS>, MAX_PREDICTION_ROWS>>,
}

#[derive(Deserialize)]
struct PredictedMaskMessage {
    class: Option<u32>,
    mask: String,
    width: u32,
    height: u32,
    foreground_fraction: f64,
    confidence: f64,
}

impl From<PredictedMaskMessage> for PredictedMask {
    fn from(message: PredictedMaskMessage) -> Self {
        Self {
            class: message.class,
            mask: message.mask,
            size: PixelSize {
                width: message.width,
                height: message.height,
            },
            foreground_fraction: message.foreground_fraction,
            confidence: message.confidence,
        }
    }
}

#[derive(Deserialize)]
struct ErrorMessage {
    kind: String,
    #[serde(flatten)]
    first: ProblemMessage,
    #[serde(default)]
    more: ShortList<ProblemMessage, MAX_PROBLEMS>,
}

#[derive(Deserialize)]
struct ProblemMessage {
    row: Option<usize>,
    column: Option<String>,
    message: String,
}

impl From<ProblemMessage> for RowProblem {
    fn from(problem: ProblemMessage) -> Self {
        Self {
            row: problem.row,
            column: display(&problem.column.unwrap_or_default()),
            message: display(&problem.message),
        }
    }
}

/// Reads the first message.
pub(crate) fn read_start(body: &[u8]) -> Result<Start, BrokenProtocol> {
    let message: StartMessage = from_json(body)?;
    match (&*message.r#type, message.protocol) {
        ("ready", Some(1)) => Ok(Start::Ready),
        ("failed", _) => Ok(Start::Failed {
            is_memory: message.code.as_deref() == Some("out_of_memory"),
            message: display(&message.message.unwrap_or_default()),
        }),
        _ => Err(broken("the first message is neither ready nor failed")),
    }
}

/// Reads a response of the model. Panics on some malformed Arrow streams, so callers catch panics.
pub(crate) fn read_response(
    body: &[u8],
    signature: &ModelSignature,
) -> Result<Response, BrokenProtocol> {
    if arrow::is_stream(body) {
        // From the stored signature, not from the message: the process could claim millions of columns.
        let classes = signature.classes.as_ref().map_or(0, Vec::len);
        let decoded = arrow::decode(body, classes);
        let (id, predictions) = decoded.map_err(|error| broken(&error.to_string()))?;
        return Ok(Response {
            id,
            content: Content::Predicted(predictions),
        });
    }
    let (id, error, predictions) = if signature.problem == ProblemType::SemanticSegmentation {
        // Longer than other messages, because masks are images in base64; the frame bounds it.
        let message: MaskMessage = from_long_json(body)?;
        let masks = message.masks.map(|rows| {
            let masks = |row: ShortList<_, MAX_MASKS>| row.0.into_iter().map(Into::into).collect();
            rows.0.into_iter().map(masks).collect()
        });
        let images = |images: ShortList<String, MAX_PREDICTION_ROWS>| RawPredictions {
            values: images.0.into_iter().map(Class::Text).map(Some).collect(),
            probabilities: None,
            masks,
        };
        (message.id, message.error, message.predictions.map(images))
    } else {
        let message: ResponseMessage = from_json(body)?;
        let probabilities = message
            .probabilities
            .map(|rows| by_class(&rows.0, signature));
        let probabilities = probabilities.transpose()?;
        let predictions = message.predictions.map(|values| RawPredictions {
            values: values.0,
            probabilities,
            masks: None,
        });
        (message.id, message.error, predictions)
    };
    let content = match (error, predictions) {
        // A failure of the model, which is no fault of the rows.
        (Some(error), None) if error.kind == "internal" => {
            Content::Refused(display(&error.first.message))
        }
        (Some(error), None) => {
            let problems = std::iter::once(error.first).chain(error.more.0);
            Content::Rejected(problems.map(RowProblem::from).collect())
        }
        (None, Some(predictions)) => Content::Predicted(predictions),
        _ => return Err(broken("a response has neither predictions nor an error")),
    };
    // Without it a late response to a request that timed out could be taken for that to the next one.
    let id = id.ok_or_else(|| broken("a response has no id"))?;
    Ok(Response { id, content })
}

/// Returns the probabilities of each class.
fn by_class(
    rows: &[BTreeMap<String, Option<f64>>],
    signature: &ModelSignature,
) -> Result<Vec<Vec<Option<f64>>>, BrokenProtocol> {
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let classes = signature.classes.iter().flatten();
    classes
        .map(|class| {
            // JSON names the classes by texts, the signature has them in their own type.
            // Found once, in the first row: matching each name in each row would cost rows times classes comparisons.
            let mut names = first.keys().filter(|name| class.is_named(name));
            let name = names.next().ok_or_else(|| broken("a class is missing"))?;
            let column = rows.iter().map(|row| row.get(name).copied());
            let column: Option<Vec<_>> = column.collect();
            column.ok_or_else(|| broken("rows have different classes"))
        })
        .collect()
}

fn from_json<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, BrokenProtocol> {
    // Before parsing: a tree of JSON takes several times the memory of its text.
    if body.len() > MAX_JSON {
        return Err(broken("a message is too long"));
    }
    from_long_json(body)
}

fn from_long_json<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, BrokenProtocol> {
    serde_json::from_slice(body).map_err(|error| broken(&error.to_string()))
}

fn broken(reason: &str) -> BrokenProtocol {
    BrokenProtocol(display(reason))
}

/// Returns the beginning of an untrusted text, without control characters.
fn display(text: &str) -> String {
    // It goes to the log and to people: control characters could forge lines or terminal commands.
    let characters = text.chars().take(MAX_TEXT);
    characters
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn signature(problem: ProblemType, classes: Option<Vec<Class>>) -> ModelSignature {
        ModelSignature {
            features: Vec::new(),
            problem,
            classes,
        }
    }

    fn classes() -> ModelSignature {
        let classes = vec![Class::Integer(1), Class::Text("b".to_owned())];
        signature(ProblemType::Multiclass, Some(classes))
    }

    fn read(message: &serde_json::Value) -> Result<Response, BrokenProtocol> {
        read_response(message.to_string().as_bytes(), &classes())
    }

    #[test]
    fn the_first_message_is_ready_or_failed() {
        let start = |message: serde_json::Value| read_start(message.to_string().as_bytes());
        assert_eq!(
            start(json!({"type": "ready", "protocol": 1})),
            Ok(Start::Ready)
        );
        let failed = start(json!({"type": "failed", "code": "out_of_memory", "message": "a\n\tb"}));
        assert_eq!(
            failed,
            Ok(Start::Failed {
                is_memory: true,
                message: "a  b".to_owned()
            })
        );
        for other in [
            json!({"type": "ready", "protocol": 2}),
            json!({}),
            json!([1]),
        ] {
            assert!(start(other).is_err());
        }
        let long = json!({"type": "failed", "message": "x".repeat(10_000)});
        let Ok(Start::Failed { message, .. }) = start(long) else {
            panic!("failed");
        };
        assert_eq!(message.len(), MAX_TEXT);
    }

    #[test]
    fn probabilities_are_ordered_by_class() {
        let response = read(&json!({
            "id": 7, "predictions": [1, "b"],
            "probabilities": [{"b": 0.25, "1": 0.75}, {"1": null, "b": 1}],
        }));
        let predicted = RawPredictions {
            values: vec![Some(Class::Integer(1)), Some(Class::Text("b".to_owned()))],
            probabilities: Some(vec![vec![Some(0.75), None], vec![Some(0.25), Some(1.0)]]),
            masks: None,
        };
        let content = Content::Predicted(predicted);
        assert_eq!(response, Ok(Response { id: 7, content }));
    }

    #[test]
    fn problems_name_row_and_column_and_an_internal_error_is_a_refusal() {
        let response = read(&json!({
            "id": 7,
            "error": {"kind": "value", "row": 3, "column": "photo", "message": "no image",
                      "more": [{"kind": "value", "row": 4, "column": "photo", "message": "none"}]},
        }));
        let Content::Rejected(problems) = response.unwrap().content else {
            panic!("rejected");
        };
        assert_eq!(
            problems.to_string(),
            "data[3].photo: no image; data[4].photo: none"
        );
        let response = read(&json!({
            "id": 7, "error": {"kind": "internal", "row": null, "column": null, "message": "m"},
        }));
        assert_eq!(response.unwrap().content, Content::Refused("m".to_owned()));
    }

    #[test]
    fn masks_are_texts() {
        let segmentation = signature(ProblemType::SemanticSegmentation, None);
        let body = json!({
            "id": 1, "predictions": ["iVBO"], "probabilities": null,
            "masks": [[{
                "class": null, "mask": "iVBP", "width": 4, "height": 2, "foreground_fraction": 0.5,
                "confidence": 0.75,
            }]],
        });
        let response = read_response(body.to_string().as_bytes(), &segmentation).unwrap();
        let mask = PredictedMask {
            class: None,
            mask: "iVBP".to_owned(),
            size: PixelSize {
                width: 4,
                height: 2,
            },
            foreground_fraction: 0.5,
            confidence: 0.75,
        };
        let predicted = RawPredictions {
            values: vec![Some(Class::Text("iVBO".to_owned()))],
            probabilities: None,
            masks: Some(vec![vec![mask]]),
        };
        assert_eq!(response.content, Content::Predicted(predicted));
    }

    #[test]
    fn messages_that_are_none_of_the_protocol_are_refused() {
        for message in [
            json!({"predictions": [1]}),
            json!({"id": "1", "predictions": [1]}),
            json!({"id": 1}),
            json!({"id": 1, "predictions": [1], "error": {"kind": "internal", "message": ""}}),
            json!({"id": 1, "predictions": vec![1; MAX_PREDICTION_ROWS + 1]}),
            json!({"id": 1, "predictions": [[1]]}),
            json!({"id": 1, "predictions": [1], "probabilities": [{"other": 1}]}),
            json!({"id": 1, "predictions": [1, 1], "probabilities": [{"1": 1, "b": 0}, {"1": 1}]}),
            json!("hello"),
        ] {
            assert!(read(&message).is_err(), "{message}");
        }
        assert!(read_response(b"\xff\xff\xff\xffgarbage", &classes()).is_err());
        assert!(read_response(b"", &classes()).is_err());
        assert!(read_response(&vec![b' '; MAX_JSON + 1], &classes()).is_err());
    }
}
