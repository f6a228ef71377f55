//! Definitions of parameters, in bodies and responses.

use labdata_domain::{
    jobs::{MAX_PARAMETER_TEXT, MAX_PARAMETERS, ParameterDefinition, Widget},
    patterns,
};
use labdata_request_body::{
    Reader,
    fields::{optional, or, required},
    names, output,
    readers::{any, boolean, choice, list, number, shape, storable, text},
    shape,
};
use serde_json::{Number, Value};

shape! {
    /// One parameter of a job's runs.
    #[derive(Clone, Debug)]
    pub struct ParameterBody {
        /// The widget that asks for it.
        widget_type: Widget = required(choice(Widget::ALL)),
        /// Its name among the run's parameters; each name once.
        parameter_name: String = required(text(1..=MAX_PARAMETER_TEXT).with("pattern", patterns::ONE_LINE)),
        /// Label displayed instead of the name.
        label: Option<String> = optional(text(..=MAX_PARAMETER_TEXT)),
        /// Source of the choices.
        model_source: Option<String> = optional(text(..=MAX_PARAMETER_TEXT)),
        /// The least number.
        min: Option<Number> = optional(number()),
        /// The greatest number.
        max: Option<Number> = optional(number()),
        /// The distance between numbers; greater than 0.
        step: Option<Number> = optional(number().with("exclusiveMinimum", 0)),
        /// The file that is displayed, such as the image of a region.
        file_id: Option<String> = optional(text(..=MAX_PARAMETER_TEXT)),
        /// The name of the parameter that holds the id of the file that is displayed.
        file_id_parameter: Option<String> = optional(text(..=MAX_PARAMETER_TEXT)),
        /// True if a run needs a value.
        required: bool = or(false, boolean()),
        /// The value of runs that are given none.
        default: Option<Value> = optional(storable(any())),
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
pub(super) fn definitions() -> impl Reader<Output = Vec<ParameterDefinition>> {
    list(shape::<ParameterBody>().map(ParameterDefinition::from)).of(0..=MAX_PARAMETERS)
}

names! {
    /// Input control of a parameter.
    pub ParameterWidget = Widget::ALL.map(|(name, _)| name);
}

output! {
    /// One parameter of a job's runs.
    #[derive(Clone, Debug)]
    pub struct ParameterView as "ParameterDefinition" from definition: ParameterDefinition {
        /// Its input control.
        widget_type: ParameterWidget = definition.widget_type.as_str().into(),
        /// Its name among the run's parameters.
        parameter_name: String = definition.parameter_name,
        /// Label displayed instead of the name.
        label: Option<String> = definition.label,
        /// Source of the choices.
        model_source: Option<String> = definition.model_source,
        /// The least number.
        min: Option<Number> = definition.min,
        /// The greatest number.
        max: Option<Number> = definition.max,
        /// Step between numbers.
        step: Option<Number> = definition.step,
        /// The file that is displayed.
        file_id: Option<String> = definition.file_id,
        /// The name of the parameter that holds the id of the file that is displayed.
        file_id_parameter: Option<String> = definition.file_id_parameter,
        /// True if a run needs a value.
        required: bool = definition.required,
        /// The value of runs that are given none.
        default: Option<Value> = definition.default,
    }
}
