//! Parameters of jobs.

mod value;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use self::value::check_value;
use crate::refusal::{ErrorCode, Refuse};

/// Maximum number of parameters of a job.
pub const MAX_PARAMETERS: usize = 100;

/// Maximum number of characters of a parameter's name and of its other texts.
pub const MAX_PARAMETER_TEXT: usize = 200;

/// Input control of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Widget {
    /// One of several choices.
    Combobox,
    /// A day.
    Date,
    /// A number within bounds.
    Slider,
    /// A text.
    Text,
    /// A part of an image.
    Region,
}

impl Widget {
    /// All widgets and their names in the API.
    pub const ALL: [(&'static str, Self); 5] = [
        ("combobox", Self::Combobox),
        ("date", Self::Date),
        ("slider", Self::Slider),
        ("text", Self::Text),
        ("region", Self::Region),
    ];

    /// Returns its name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Combobox => "combobox",
            Self::Date => "date",
            Self::Slider => "slider",
            Self::Text => "text",
            Self::Region => "region",
        }
    }
}

/// Parameter of a job's runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterDefinition {
    /// Input control.
    pub widget_type: Widget,
    /// Name among the run's parameters.
    pub parameter_name: String,
    /// Label displayed instead of the name.
    pub label: Option<String>,
    /// Source of the choices.
    pub model_source: Option<String>,
    /// Minimum.
    pub min: Option<Number>,
    /// Maximum.
    pub max: Option<Number>,
    /// Step between numbers.
    pub step: Option<Number>,
    /// Id of the file that is displayed, such as the image of a region.
    pub file_id: Option<String>,
    /// Name of the parameter that holds the id of the file that is displayed.
    pub file_id_parameter: Option<String>,
    /// True if a run needs a value.
    pub required: bool,
    /// Value of runs that give none.
    pub default: Option<Value>,
}

/// Reason why parameter definitions are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parameter_definitions[{index}]: {problem}")]
pub struct InvalidParameter {
    index: usize,
    problem: String,
}

impl Refuse for InvalidParameter {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidParameters
    }
}

/// Checks the parameter definitions of a job.
///
/// # Errors
/// [`InvalidParameter`] for the first invalid one.
pub fn check_parameters(definitions: &[ParameterDefinition]) -> Result<(), InvalidParameter> {
    let names: BTreeSet<&str> = definitions
        .iter()
        .map(|definition| definition.parameter_name.as_str())
        .collect();
    let mut seen = BTreeSet::new();
    for (index, definition) in definitions.iter().enumerate() {
        let name = definition.parameter_name.as_str();
        let refuse = |problem| Err(InvalidParameter { index, problem });
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return refuse(
                "a parameter_name is not blank and has no control characters".to_owned(),
            );
        }
        if !seen.insert(name) {
            return refuse(format!("another parameter is named {name:?}"));
        }
        if let Some(other) = &definition.file_id_parameter
            // A form would otherwise wait for a file that no field names.
            && (other == name || !names.contains(other.as_str()))
        {
            return refuse(format!(
                "file_id_parameter names {other:?}, which is no other parameter of this job"
            ));
        }
        if let Err(problem) = check_definition(definition) {
            return refuse(problem);
        }
    }
    Ok(())
}

fn check_definition(definition: &ParameterDefinition) -> Result<(), String> {
    let number = |number: &Option<Number>| number.as_ref().and_then(Number::as_f64);
    if let (Some(min), Some(max)) = (number(&definition.min), number(&definition.max))
        && min > max
    {
        return Err(format!("min {min} is greater than max {max}"));
    }
    // Browsers replace this kind of step by 1 without a warning.
    if number(&definition.step).is_some_and(|step| step <= 0.0) {
        return Err("step is not greater than 0".to_owned());
    }
    let Some(default) = &definition.default else {
        return Ok(());
    };
    check_value(definition, default).map_err(|problem| format!("the default {problem}"))
}

/// Reason why a run cannot have its parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterRefusal {
    /// A required parameter has neither a value nor a default.
    #[error("the parameter {0:?} is required: give it a value")]
    Missing(String),
    /// A value does not fit its parameter's definition.
    #[error("the parameter {name:?}: {problem}")]
    Invalid {
        /// Name of the parameter.
        name: String,
        /// The value and what it breaks.
        problem: String,
    },
}

impl Refuse for ParameterRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Missing(_) => ErrorCode::ParameterMissing,
            Self::Invalid { .. } => ErrorCode::InvalidParameters,
        }
    }
}

/// Returns the parameters of a run: the given values, and defaults for missing ones. Null counts as
/// missing. Values without a definition are stored.
///
/// # Errors
/// [`ParameterRefusal`] for the first parameter that is required and has neither value nor default,
/// or whose given value does not fit its definition.
pub fn effective_parameters(
    definitions: &[ParameterDefinition],
    given: Map<String, Value>,
) -> Result<Map<String, Value>, ParameterRefusal> {
    for definition in definitions {
        let name = &definition.parameter_name;
        match given.get(name).filter(|value| !value.is_null()) {
            Some(value) => {
                check_value(definition, value).map_err(|problem| ParameterRefusal::Invalid {
                    name: name.clone(),
                    problem,
                })?;
            }
            None if definition.required && definition.default.is_none() => {
                return Err(ParameterRefusal::Missing(name.clone()));
            }
            None => {}
        }
    }
    Ok(with_defaults(definitions, given))
}

/// Returns the given values, and defaults for missing ones, without requiring any: for triggered
/// runs.
#[must_use]
pub fn with_defaults(
    definitions: &[ParameterDefinition],
    mut given: Map<String, Value>,
) -> Map<String, Value> {
    for definition in definitions {
        if let Some(default) = &definition.default {
            let value = given
                .entry(definition.parameter_name.clone())
                .or_insert(Value::Null);
            // Null means the same as absent in every body.
            if value.is_null() {
                value.clone_from(default);
            }
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    pub(super) fn definition(widget: Widget, name: &str) -> ParameterDefinition {
        ParameterDefinition {
            widget_type: widget,
            parameter_name: name.to_owned(),
            label: None,
            model_source: None,
            min: None,
            max: None,
            step: None,
            file_id: None,
            file_id_parameter: None,
            required: false,
            default: None,
        }
    }

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => panic!("not an object"),
        }
    }

    fn slider(min: f64, max: f64, default: Value) -> ParameterDefinition {
        ParameterDefinition {
            min: Number::from_f64(min),
            max: Number::from_f64(max),
            default: Some(default),
            ..definition(Widget::Slider, "threshold")
        }
    }

    #[test]
    fn defaults_fill_in_missing_values_only() {
        let definitions = [
            ParameterDefinition {
                default: Some(json!("a")),
                ..definition(Widget::Text, "first")
            },
            ParameterDefinition {
                default: Some(json!(0.5)),
                required: true,
                ..definition(Widget::Slider, "second")
            },
            definition(Widget::Text, "third"),
        ];
        let given = map(json!({"first": "b", "second": null, "other": [1]}));
        assert_eq!(
            effective_parameters(&definitions, given),
            Ok(map(json!({"first": "b", "second": 0.5, "other": [1]})))
        );
        assert_eq!(
            effective_parameters(&definitions, Map::new()),
            Ok(map(json!({"first": "a", "second": 0.5})))
        );
    }

    #[test]
    fn a_required_parameter_without_value_and_default_is_named() {
        let definitions = [
            definition(Widget::Text, "note"),
            ParameterDefinition {
                required: true,
                ..definition(Widget::Text, "plate")
            },
        ];
        for given in [json!({}), json!({"plate": null}), json!({"note": "x"})] {
            let error = effective_parameters(&definitions, map(given)).unwrap_err();
            assert_eq!(error, ParameterRefusal::Missing("plate".to_owned()));
            assert!(error.to_string().contains("\"plate\""));
        }
        let given = map(json!({"plate": "P1"}));
        assert_eq!(effective_parameters(&definitions, given.clone()), Ok(given));
    }

    #[test]
    fn a_run_is_given_only_what_could_be_a_default() {
        let definitions = [slider(0.0, 4.0, json!(1))];
        for (value, expected) in [
            (
                json!(5),
                "the parameter \"threshold\": 5 is greater than max 4",
            ),
            (
                json!("1"),
                "the parameter \"threshold\": \"1\" is no number",
            ),
        ] {
            let given = map(json!({"threshold": value}));
            let error = effective_parameters(&definitions, given).unwrap_err();
            assert_eq!(error.to_string(), expected);
            assert_eq!(error.code(), ErrorCode::InvalidParameters);
            let default = slider(0.0, 4.0, value);
            assert!(check_parameters(&[default]).is_err());
        }
    }

    #[test]
    fn definitions_that_make_no_sense_are_refused() {
        let region = |other: &str| ParameterDefinition {
            file_id_parameter: Some(other.to_owned()),
            ..definition(Widget::Region, "well")
        };
        let text = || definition(Widget::Text, "image");
        let date = |default: &str| ParameterDefinition {
            default: Some(json!(default)),
            ..definition(Widget::Date, "day")
        };
        let wrong = [
            vec![definition(Widget::Text, " ")],
            vec![text(), text()],
            vec![region("image")],
            vec![region("well")],
            vec![slider(2.0, 1.0, json!(1.5))],
            vec![slider(0.0, 1.0, json!(2))],
            vec![slider(0.0, 1.0, json!("0.5"))],
            vec![ParameterDefinition {
                step: Number::from_f64(0.0),
                ..text()
            }],
            vec![date("yesterday")],
            vec![ParameterDefinition {
                step: Number::from_f64(0.5),
                ..slider(0.0, 1.0, json!(0.3))
            }],
            vec![ParameterDefinition {
                default: Some(json!("nope")),
                ..definition(Widget::Region, "well")
            }],
            vec![ParameterDefinition {
                default: Some(json!(["x"])),
                ..definition(Widget::Combobox, "strain")
            }],
            vec![ParameterDefinition {
                default: Some(json!({"a": 1})),
                ..text()
            }],
        ];
        for definitions in wrong {
            assert!(check_parameters(&definitions).is_err(), "{definitions:?}");
        }
        let right = [
            region("image"),
            text(),
            slider(0.0, 1.0, json!(1)),
            date("2026-03-01"),
        ];
        assert_eq!(check_parameters(&right), Ok(()));
    }

    #[test]
    fn widgets_have_their_names_of_the_api() {
        for (name, widget) in Widget::ALL {
            assert_eq!(widget.as_str(), name);
            assert_eq!(json!(widget), json!(name));
        }
        let names = Widget::ALL.map(|(name, _)| name);
        assert_eq!(names, ["combobox", "date", "slider", "text", "region"]);
    }

    #[test]
    fn the_bounds_of_a_slider_are_values_of_it() {
        for definition in [
            slider(1.0, 1.0, json!(1)),
            slider(0.0, 1.0, json!(0)),
            slider(0.0, 1.0, json!(1)),
        ] {
            assert_eq!(check_parameters(&[definition]), Ok(()));
        }
        for (default, bound) in [
            (json!(-0.5), "less than min 0"),
            (json!(1.5), "greater than max 1"),
        ] {
            let error = check_parameters(&[slider(0.0, 1.0, default)]).unwrap_err();
            assert!(error.to_string().contains(bound), "{error}");
        }
        let swapped = check_parameters(&[slider(2.0, 1.0, json!(1.5))]).unwrap_err();
        assert_eq!(
            swapped.to_string(),
            "parameter_definitions[0]: min 2 is greater than max 1"
        );
    }
}
