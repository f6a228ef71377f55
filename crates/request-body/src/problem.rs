//! One problem of a request's shape, in the form that clients of pydantic v2 know.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    Output, output,
    schema::{Definitions, Schema},
};

/// The kind of a problem: pydantic's type name, message and context.
#[derive(Clone, Debug, PartialEq)]
pub struct ProblemKind {
    name: &'static str,
    message: String,
    context: Option<Value>,
}

impl ProblemKind {
    fn plain(name: &'static str, message: impl Into<String>) -> Self {
        Self {
            name,
            message: message.into(),
            context: None,
        }
    }

    fn with(name: &'static str, message: String, context: Value) -> Self {
        Self {
            name,
            message,
            context: Some(context),
        }
    }

    /// A required field is absent.
    #[must_use]
    pub fn missing() -> Self {
        Self::plain("missing", "Field required")
    }

    /// A field that the object does not have.
    #[must_use]
    pub fn extra_forbidden() -> Self {
        Self::plain("extra_forbidden", "Extra inputs are not permitted")
    }

    /// Not a string.
    #[must_use]
    pub fn string_type() -> Self {
        Self::plain("string_type", "Input should be a valid string")
    }

    /// Fewer characters than required.
    #[must_use]
    pub fn string_too_short(least: usize) -> Self {
        let message = format!(
            "String should have at least {least} character{}",
            plural(least)
        );
        Self::with("string_too_short", message, json!({ "min_length": least }))
    }

    /// More characters than allowed.
    #[must_use]
    pub fn string_too_long(most: usize) -> Self {
        let message = format!(
            "String should have at most {most} character{}",
            plural(most)
        );
        Self::with("string_too_long", message, json!({ "max_length": most }))
    }

    /// Not a whole number.
    #[must_use]
    pub fn int_type() -> Self {
        Self::plain("int_type", "Input should be a valid integer")
    }

    /// A text that is not a whole number.
    #[must_use]
    pub fn int_parsing() -> Self {
        let message = "Input should be a valid integer, unable to parse string as an integer";
        Self::plain("int_parsing", message)
    }

    /// A number with a fraction where a whole one is wanted.
    #[must_use]
    pub fn int_from_float() -> Self {
        let message = "Input should be a valid integer, got a number with a fractional part";
        Self::plain("int_from_float", message)
    }

    /// Above the greatest value.
    #[must_use]
    pub fn less_than_equal(most: i64) -> Self {
        let message = format!("Input should be less than or equal to {most}");
        Self::with("less_than_equal", message, json!({ "le": most }))
    }

    /// Below the least value.
    #[must_use]
    pub fn greater_than_equal(least: i64) -> Self {
        let message = format!("Input should be greater than or equal to {least}");
        Self::with("greater_than_equal", message, json!({ "ge": least }))
    }

    /// Not a number.
    #[must_use]
    pub fn float_type() -> Self {
        Self::plain("float_type", "Input should be a valid number")
    }

    /// A text that is not a number.
    #[must_use]
    pub fn float_parsing() -> Self {
        let message = "Input should be a valid number, unable to parse string as a number";
        Self::plain("float_parsing", message)
    }

    /// Neither true nor false.
    #[must_use]
    pub fn bool_type() -> Self {
        Self::plain("bool_type", "Input should be a valid boolean")
    }

    /// A text or number that means neither true nor false.
    #[must_use]
    pub fn bool_parsing() -> Self {
        let message = "Input should be a valid boolean, unable to interpret input";
        Self::plain("bool_parsing", message)
    }

    /// Not a list.
    #[must_use]
    pub fn list_type() -> Self {
        Self::plain("list_type", "Input should be a valid list")
    }

    /// Fewer items than required.
    #[must_use]
    pub fn too_short(least: usize, actual: usize) -> Self {
        Self::with(
            "too_short",
            format!(
                "List should have at least {least} item{} after validation, not {actual}",
                plural(least)
            ),
            json!({ "field_type": "List", "min_length": least, "actual_length": actual }),
        )
    }

    /// More items than allowed.
    #[must_use]
    pub fn too_long(most: usize, actual: usize) -> Self {
        Self::with(
            "too_long",
            format!(
                "List should have at most {most} item{} after validation, not {actual}",
                plural(most)
            ),
            json!({ "field_type": "List", "max_length": most, "actual_length": actual }),
        )
    }

    /// Not a map.
    #[must_use]
    pub fn dict_type() -> Self {
        Self::plain("dict_type", "Input should be a valid dictionary")
    }

    /// Not an object with fields.
    #[must_use]
    pub fn model_attributes_type() -> Self {
        let message = "Input should be a valid dictionary or object to extract fields from";
        Self::plain("model_attributes_type", message)
    }

    /// None of the values that are allowed.
    #[must_use]
    pub fn choice(allowed: &[&str]) -> Self {
        let quoted: Vec<String> = allowed.iter().map(|one| format!("'{one}'")).collect();
        let expected = match quoted.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => quoted.concat(),
        };
        Self::with(
            "enum",
            format!("Input should be {expected}"),
            json!({ "expected": expected }),
        )
    }

    /// Not a text that could be a UUID.
    #[must_use]
    pub fn uuid_type() -> Self {
        Self::plain(
            "uuid_type",
            "UUID input should be a string, bytes or UUID object",
        )
    }

    /// A text that is no UUID.
    #[must_use]
    pub fn uuid_parsing(error: &uuid::Error) -> Self {
        let error = error.to_string();
        let message = format!("Input should be a valid UUID, {error}");
        Self::with("uuid_parsing", message, json!({ "error": error }))
    }

    /// Not a text that could be a point in time.
    #[must_use]
    pub fn datetime_type() -> Self {
        Self::plain("datetime_type", "Input should be a valid datetime")
    }

    /// A text that is no point in time.
    #[must_use]
    pub fn datetime_from_date_parsing(error: &str) -> Self {
        let message = format!("Input should be a valid datetime or date, {error}");
        Self::with(
            "datetime_from_date_parsing",
            message,
            json!({ "error": error }),
        )
    }

    /// A point in time without its offset.
    #[must_use]
    pub fn timezone_aware() -> Self {
        Self::plain("timezone_aware", "Input should have timezone info")
    }

    /// The body is not JSON.
    #[must_use]
    pub fn json_invalid(error: &str) -> Self {
        Self::with(
            "json_invalid",
            "JSON decode error".to_owned(),
            json!({ "error": error }),
        )
    }

    /// Anything else about a value; the text says what does not hold.
    #[must_use]
    pub fn value_error(text: &str) -> Self {
        Self::with(
            "value_error",
            format!("Value error, {text}"),
            json!({ "error": text }),
        )
    }

    /// A text with a NUL character.
    #[must_use]
    pub(crate) fn no_nul() -> Self {
        Self::value_error("text cannot hold NUL characters")
    }

    /// More problems than one response holds.
    #[must_use]
    pub(crate) fn too_many(left_out: usize) -> Self {
        let message = format!("{left_out} more problems were left out");
        Self::with(
            "too_many_problems",
            message,
            json!({ "left_out": left_out }),
        )
    }
}

fn plural(number: usize) -> &'static str {
    if number == 1 { "" } else { "s" }
}

/// A step of the path to a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum LocationStep {
    /// `body`, `query`, `path` or `header`, then names of fields.
    Name(String),
    /// The index in a list, from 0.
    Index(usize),
}

impl Output for LocationStep {
    fn schema(definitions: &mut Definitions) -> Schema {
        definitions.define("LocationStep", |definitions| {
            let name = String::schema(definitions);
            let index = usize::schema(definitions);
            Schema::one_of([
                name.described("`body`, `query`, `path` or `header`, then names of fields."),
                index.described("The place in a list."),
            ])
            .described("A step of the way to a value.")
        })
    }
}

output! {
    /// A problem of a request's shape.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ShapeProblem as "ShapeProblem" {
        /// The kind of problem, such as `missing` or `string_type`.
        #[example = "missing"]
        pub r#type: String,
        /// Location: `body`, `query`, `path` or `header`, then field names and indices.
        pub loc: Vec<LocationStep>,
        /// Explanation for people.
        #[example = "Field required"]
        pub msg: String,
        /// The value that stands there (long ones are shortened).
        pub input: Value,
        /// Figures of the message.
        #[optional]
        pub ctx: Option<Map<String, Value>>,
    }
}

impl ShapeProblem {
    /// A problem with the value at that place.
    #[must_use]
    pub fn new(kind: ProblemKind, loc: Vec<LocationStep>, input: Value) -> Self {
        let ctx = match kind.context {
            Some(Value::Object(map)) => Some(map),
            _ => None,
        };
        Self {
            r#type: kind.name.to_owned(),
            loc,
            msg: kind.message,
            input,
            ctx,
        }
    }

    /// A problem of a parameter of the query string.
    #[must_use]
    pub fn of_query(name: &str, kind: ProblemKind, input: Value) -> Self {
        let loc = ["query", name].map(|step| LocationStep::Name(step.to_owned()));
        Self::new(kind, loc.into(), input)
    }

    /// A problem between fields of the body, which only a use case can know.
    #[must_use]
    pub fn of_fields(kind: ProblemKind, input: Value) -> Self {
        let loc = LocationStep::Name("body".to_owned());
        Self::new(kind, vec![loc], input)
    }

    /// A problem with the value of a header.
    #[must_use]
    pub fn of_header(name: &str, kind: ProblemKind, input: Value) -> Self {
        let loc = ["header", name].map(|step| LocationStep::Name(step.to_owned()));
        Self::new(kind, loc.into(), input)
    }
}
