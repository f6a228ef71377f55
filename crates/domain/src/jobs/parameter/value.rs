//! Values of parameters: defaults, and what a run is given.

use serde_json::{Map, Number, Value};

use super::{ParameterDefinition, Widget};
use crate::timestamp;

/// Checks a default of a parameter, or a value that a run is given.
///
/// # Errors
/// The value and what it breaks, as the rest of a sentence that names the parameter.
pub(super) fn check_value(definition: &ParameterDefinition, value: &Value) -> Result<(), String> {
    let problem = match (definition.widget_type, value) {
        (_, Value::String(text)) if definition.required && text.trim().is_empty() => {
            Some("is blank, and the parameter is required".to_owned())
        }
        (Widget::Slider, Value::Number(number)) => out_of_range(definition, number),
        (Widget::Slider, _) => Some("is no number".to_owned()),
        (Widget::Date, Value::String(text)) if is_date(text) => None,
        (Widget::Date, _) => {
            Some("is no date such as 2026-03-01, and no datetime with its offset".to_owned())
        }
        // Which choices there are depends on rows that may change after the definition.
        (Widget::Combobox, Value::String(_) | Value::Number(_))
        | (Widget::Text, Value::String(_)) => None,
        (Widget::Combobox, _) => Some("is neither a text nor a number".to_owned()),
        (Widget::Text, _) => Some("is no text".to_owned()),
        // Whether it lies within the image is not known here.
        (Widget::Region, Value::Object(sides)) => not_a_rectangle(sides),
        (Widget::Region, _) => Some("is no object of x, y, width and height".to_owned()),
    };
    problem.map_or(Ok(()), |problem| {
        Err(format!("{} {problem}", abbreviated(value)))
    })
}

fn is_date(text: &str) -> bool {
    timestamp::parse_date(text).is_some() || timestamp::parse(text).is_some()
}

fn out_of_range(definition: &ParameterDefinition, number: &Number) -> Option<String> {
    let float = |number: &Number| number.as_f64();
    let value = float(number)?;
    let bound = |bound: &Option<Number>| bound.as_ref().and_then(float);
    if let Some(min) = bound(&definition.min)
        && value < min
    {
        return Some(format!("is less than min {min}"));
    }
    if let Some(max) = bound(&definition.max)
        && value > max
    {
        return Some(format!("is greater than max {max}"));
    }
    let step = bound(&definition.step)?;
    // A browser's slider counts its steps from min, too.
    let base = bound(&definition.min).unwrap_or_default();
    let steps = (value - base) / step;
    // 0.3 is not exactly three times 0.1: rounding of value and base is in the difference.
    let tolerance = 1e-9 + 4.0 * f64::EPSILON * value.abs().max(base.abs()) / step;
    ((steps - steps.round()).abs() > tolerance)
        .then(|| format!("is no whole number of steps of {step} above {base}"))
}

fn not_a_rectangle(sides: &Map<String, Value>) -> Option<String> {
    for name in ["x", "y", "width", "height"] {
        let Some(side) = sides.get(name).and_then(Value::as_f64) else {
            return Some(format!("has no number {name}"));
        };
        let is_length = name == "width" || name == "height";
        if side < 0.0 || (is_length && side <= 0.0) {
            let bound = if is_length {
                "greater than 0"
            } else {
                "0 or greater"
            };
            return Some(format!("has the {name} {side}, which is not {bound}"));
        }
    }
    None
}

/// The value as JSON, cut to the length of a line.
fn abbreviated(value: &Value) -> String {
    const MAX: usize = 80;
    let text = value.to_string();
    if text.chars().count() <= MAX {
        return text;
    }
    text.chars().take(MAX).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::tests::definition, *};

    fn problem(definition: &ParameterDefinition, value: &Value) -> String {
        check_value(definition, value).expect_err(&format!("{value} is accepted"))
    }

    #[test]
    fn a_slider_takes_numbers_on_its_steps_between_its_bounds() {
        let slider = ParameterDefinition {
            min: Some(0.into()),
            max: Some(4.into()),
            step: Number::from_f64(0.5),
            ..definition(Widget::Slider, "cut")
        };
        for value in [json!(0), json!(0.5), json!(3.5), json!(4), json!(4.0)] {
            assert_eq!(check_value(&slider, &value), Ok(()), "{value}");
        }
        for (value, expected) in [
            (json!(5), "5 is greater than max 4"),
            (json!(-1), "-1 is less than min 0"),
            (json!(0.3), "0.3 is no whole number of steps of 0.5 above 0"),
            (json!("1"), "\"1\" is no number"),
            (json!(true), "true is no number"),
        ] {
            assert_eq!(problem(&slider, &value), expected);
        }
    }

    #[test]
    fn rounding_of_floats_is_no_deviation_from_a_step() {
        for (min, step, value) in [
            (0.0, 0.1, 0.3),
            (0.1, 0.1, 0.7),
            (-1.0, 0.05, 0.95),
            (1e9, 0.1, 1e9 + 0.7),
            (0.0, 1e-6, 0.123_457),
        ] {
            let slider = ParameterDefinition {
                min: Number::from_f64(min),
                step: Number::from_f64(step),
                ..definition(Widget::Slider, "cut")
            };
            assert_eq!(check_value(&slider, &json!(value)), Ok(()), "{value}");
        }
    }

    #[test]
    fn dates_texts_and_choices_have_their_types() {
        let [date, text, choice] =
            [Widget::Date, Widget::Text, Widget::Combobox].map(|widget| definition(widget, "it"));
        for value in [
            json!("2026-02-30"),
            json!("01.02.2026"),
            json!(20_260_101),
            json!(""),
        ] {
            assert!(problem(&date, &value).contains("is no date"), "{value}");
        }
        assert_eq!(
            check_value(&date, &json!("2026-02-28T12:00:00+01:00")),
            Ok(())
        );
        assert_eq!(problem(&text, &json!(5)), "5 is no text");
        assert_eq!(problem(&text, &json!({"a": 1})), "{\"a\":1} is no text");
        assert_eq!(check_value(&text, &json!("")), Ok(()));
        assert!(problem(&choice, &json!(["x"])).contains("neither a text nor a number"));
        assert_eq!(check_value(&choice, &json!(7)), Ok(()));
        let long = problem(&text, &json!(["x".repeat(1000)]));
        assert!(long.chars().count() < 100, "{long}");
    }

    #[test]
    fn a_required_parameter_takes_no_blank_text() {
        for widget in [Widget::Text, Widget::Combobox] {
            let required = ParameterDefinition {
                required: true,
                ..definition(widget, "plate")
            };
            for blank in ["", " \t"] {
                assert!(problem(&required, &json!(blank)).contains("is blank"));
            }
        }
    }

    #[test]
    fn a_region_is_a_rectangle() {
        let region = definition(Widget::Region, "well");
        let value = json!({"x": 0, "y": 1.5, "width": 80, "height": 1});
        assert_eq!(check_value(&region, &value), Ok(()));
        for (value, expected) in [
            (json!("nope"), "is no object"),
            (json!({"x": 0, "y": 0, "width": 1}), "has no number height"),
            (
                json!({"x": 0, "y": 0, "width": "1", "height": 1}),
                "has no number width",
            ),
            (
                json!({"x": 0, "y": 0, "width": 0, "height": 1}),
                "has the width 0, which is not greater than 0",
            ),
            (
                json!({"x": -1, "y": 0, "width": 1, "height": 1}),
                "has the x -1, which is not 0 or greater",
            ),
        ] {
            let problem = problem(&region, &value);
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
