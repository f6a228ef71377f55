//! Definitions of parameters, in bodies and answers.

use labdata_domain::jobs::{MAX_PARAMETERS, ParameterDefinition, Widget};
use serde::Serialize;
use serde_json::{Number, Value};
use utoipa::ToSchema;

use crate::http::shape::{
    Fields, Kind, Place, Reader, Shape,
    readers::{any, boolean, choice, list_of, shape, storable, text},
};

/// One parameter of a job's runs.
#[derive(Clone, Debug, ToSchema)]
pub struct ParameterBody {
    /// With what it is asked for: `combobox`, `date`, `slider`, `text` or `region`.
    #[schema(value_type = String, example = "slider")]
    widget_type: Widget,
    /// Its name among the run's parameters; each name once.
    #[schema(min_length = 1, max_length = 200)]
    parameter_name: String,
    /// What people see instead of the name.
    #[schema(max_length = 200)]
    label: Option<String>,
    /// Where choices come from.
    #[schema(max_length = 200)]
    model_source: Option<String>,
    /// The least number.
    #[schema(value_type = Option<f64>)]
    min: Option<Number>,
    /// The greatest number.
    #[schema(value_type = Option<f64>)]
    max: Option<Number>,
    /// How far numbers are apart; greater than 0.
    #[schema(value_type = Option<f64>)]
    step: Option<Number>,
    /// The file that is shown, such as the image of a region.
    #[schema(max_length = 200)]
    file_id: Option<String>,
    /// The name of the parameter that holds the id of the file that is shown.
    #[schema(max_length = 200)]
    file_id_parameter: Option<String>,
    /// Whether a run needs a value; false unless given.
    #[schema(value_type = Option<bool>)]
    required: bool,
    /// The value of runs that are given none.
    default: Option<Value>,
}

/// A number, kept as it is written.
fn number() -> impl Reader<Number> {
    |value: Value, place: &Place<'_>| match value {
        Value::Number(number) => Some(number),
        _ => place.refuse(Kind::float_type()),
    }
}

impl Shape for ParameterBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let widget_type = fields.required("widget_type", choice(&Widget::ALL));
        let parameter_name = fields.required("parameter_name", text(1..=200));
        let label = fields.nullable("label", text(..=200));
        let model_source = fields.nullable("model_source", text(..=200));
        let min = fields.nullable("min", number());
        let max = fields.nullable("max", number());
        let step = fields.nullable("step", number());
        let file_id = fields.nullable("file_id", text(..=200));
        let file_id_parameter = fields.nullable("file_id_parameter", text(..=200));
        let required = fields.nullable("required", boolean());
        let default = fields.nullable("default", storable(any()));
        Some(Self {
            widget_type: widget_type?,
            parameter_name: parameter_name?,
            label: label?,
            model_source: model_source?,
            min: min?,
            max: max?,
            step: step?,
            file_id: file_id?,
            file_id_parameter: file_id_parameter?,
            required: required?.unwrap_or(false),
            default: default?,
        })
    }
}

impl From<ParameterBody> for ParameterDefinition {
    fn from(body: ParameterBody) -> Self {
        Self {
            widget_type: body.widget_type,
            parameter_name: body.parameter_name,
            label: body.label,
            model_source: body.model_source,
            min: body.min,
            max: body.max,
            step: body.step,
            file_id: body.file_id,
            file_id_parameter: body.file_id_parameter,
            required: body.required,
            default: body.default,
        }
    }
}

/// Reads definitions of parameters.
pub(super) fn definitions() -> impl Reader<Vec<ParameterDefinition>> {
    |value: Value, place: &Place<'_>| {
        let bodies = list_of(0..=MAX_PARAMETERS, shape::<ParameterBody>())(value, place)?;
        Some(bodies.into_iter().map(Into::into).collect())
    }
}

/// One parameter of a job's runs.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ParameterView {
    /// With what it is asked for: `combobox`, `date`, `slider`, `text` or `region`.
    #[schema(example = "slider")]
    widget_type: &'static str,
    /// Its name among the run's parameters.
    parameter_name: String,
    /// What people see instead of the name.
    label: Option<String>,
    /// Where choices come from.
    model_source: Option<String>,
    /// The least number.
    #[schema(value_type = Option<f64>)]
    min: Option<Number>,
    /// The greatest number.
    #[schema(value_type = Option<f64>)]
    max: Option<Number>,
    /// How far numbers are apart.
    #[schema(value_type = Option<f64>)]
    step: Option<Number>,
    /// The file that is shown.
    file_id: Option<String>,
    /// The name of the parameter that holds the id of the file that is shown.
    file_id_parameter: Option<String>,
    /// Whether a run needs a value.
    required: bool,
    /// The value of runs that are given none.
    default: Option<Value>,
}

impl From<ParameterDefinition> for ParameterView {
    fn from(definition: ParameterDefinition) -> Self {
        Self {
            widget_type: definition.widget_type.as_str(),
            parameter_name: definition.parameter_name,
            label: definition.label,
            model_source: definition.model_source,
            min: definition.min,
            max: definition.max,
            step: definition.step,
            file_id: definition.file_id,
            file_id_parameter: definition.file_id_parameter,
            required: definition.required,
            default: definition.default,
        }
    }
}
