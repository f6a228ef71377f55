//! Types that are read from a request, and their declaration.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::{Map, Value};

use crate::{
    field::Fields,
    path::{FieldPath, Problems, fitting},
    problem::{ProblemKind, ShapeProblem},
    schema::{Definitions, Property},
};

/// A type that is read from an object: a JSON body, a query string or the variables of a path.
/// Declared by [`shape!`](crate::shape!).
pub trait Shape: Sized {
    /// Its name in schemas.
    const NAME: &'static str;
    /// Its documentation, as doc comments give it.
    const DESCRIPTION: &'static str;
    /// True if fields that it does not declare are problems; they are ignored otherwise.
    const IS_CLOSED: bool = false;
    /// Depth of lists and objects from which numbers belong to values that are stored as JSON: no integer there may be
    /// one that a float would change.
    const JSON_DEPTH: usize = usize::MAX;

    /// Takes its fields and reports every problem. `None` if it cannot be built.
    fn take(fields: &mut Fields<'_>) -> Option<Self>;

    /// Describes its fields.
    fn properties(definitions: &mut Definitions) -> Vec<Property>;

    /// An example of the object.
    #[must_use]
    fn example() -> Option<Value> {
        None
    }

    /// Reads an object and reports every problem. `None` if it cannot be built.
    ///
    /// A value may be returned although a rule between fields was broken; the caller checks
    /// [`Problems::is_empty`].
    #[must_use]
    fn read(value: Value, at: &FieldPath<'_>) -> Option<Self> {
        match value {
            Value::Object(object) => Self::take(&mut Fields::new(object, at)),
            _ => at.refuse(ProblemKind::model_attributes_type()),
        }
    }

    /// Reads without a tree of JSON values and stops at the first problem. Accepts exactly what
    /// [`Self::read`] accepts, except where it gives up (then `read` decides).
    ///
    /// # Errors
    /// The value does not fit.
    fn stream<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        fitting(|at| Self::read(value, at)).ok_or_else(|| D::Error::custom("does not fit"))
    }
}

/// Reads nothing: an endpoint without a query string, or a path without variables.
impl Shape for () {
    const NAME: &'static str = "Nothing";
    const DESCRIPTION: &'static str = "";

    fn take(_: &mut Fields<'_>) -> Option<Self> {
        Some(())
    }

    fn properties(_: &mut Definitions) -> Vec<Property> {
        Vec::new()
    }
}

/// Reads one part of a request on its own.
///
/// # Errors
/// Every problem.
pub fn read<T: Shape>(part: &'static str, value: Value) -> Result<T, Vec<ShapeProblem>> {
    let problems = Problems::default();
    // Reading consumes the value, and problems echo parts of it.
    let copy = value.clone();
    match T::read(value, &FieldPath::root(part, &problems)) {
        Some(read) if problems.is_empty() => Ok(read),
        _ => Err(problems.explain(&Map::from_iter([(part.to_owned(), copy)]))),
    }
}

/// Returns true for the word `refused`, with which [`shape!`](crate::shape!) closes an object.
#[doc(hidden)]
#[must_use]
pub const fn is_closed(unknown_fields: &str) -> bool {
    matches!(unknown_fields.as_bytes(), b"refused")
}

/// Declares a struct that is read from a request: `field: Type = presence(reader)`, where the
/// presence is [`required`](crate::fields::required), [`optional`](crate::fields::optional),
/// [`or`](crate::fields::or), [`group`](crate::fields::group) or [`page`](crate::fields::page).
///
/// Implements [`Shape`]: reader, JSON schema and streaming reader. The doc comments
/// become the descriptions.
///
/// An example of the object may follow the struct as `example json!({ … });`, and after it
/// `unknown_fields refused;` for an object whose undeclared fields are problems, and `json_values_at 6;` for a body that
/// holds values of JSON columns at that depth of lists and objects.
///
/// Rules between fields follow the struct and its example as `rules |at| { … }`. In the block each field is a local
/// `&Option<Type>` (`None` if a problem with it is reported already), and `at` is the path of the
/// object.
///
/// ```
/// use labdata_request_body::{ProblemKind, fields::*, readers::*, shape};
///
/// shape! {
///     /// A range of days.
///     pub struct RangeBody {
///         /// First day.
///         from: i64 = required(integer(1..=366)),
///         /// Last day.
///         to: i64 = required(integer(1..=366)),
///     }
///     rules |at| {
///         if let (Some(from), Some(to)) = (from, to) && from > to {
///             at.field("to").report(ProblemKind::value_error("must not be before from"));
///         }
///     }
/// }
/// ```
#[macro_export]
macro_rules! shape {
    (
        $(#[$($meta:tt)*])*
        $vis:vis struct $name:ident {
            $(
                $(#[$($field_meta:tt)*])*
                $field_vis:vis $field:ident: $type:ty = $reader:expr
            ),* $(,)?
        }
        $(example $example:expr;)?
        $(unknown_fields $refused:ident;)?
        $(json_values_at $depth:literal;)?
        rules |$at:ident| $rules:block
    ) => {
        $(#[$($meta)*])*
        $vis struct $name {
            $(
                $(#[$($field_meta)*])*
                $field_vis $field: $type,
            )*
        }

        impl $crate::Shape for $name {
            const NAME: &'static str = stringify!($name);
            const DESCRIPTION: &'static str = concat!($($crate::doc_line!($($meta)*)),*);
            $(const IS_CLOSED: bool = $crate::is_closed(stringify!($refused));)?
            $(const JSON_DEPTH: usize = $depth;)?

            fn take(fields: &mut $crate::Fields<'_>) -> Option<Self> {
                // No local variables: a field may bear the name of a reader.
                struct Taken {
                    $($field: Option<$type>,)*
                }

                let taken = Taken {
                    $($field: $crate::Field::take(&$crate::typed::<$type, _>($reader), stringify!($field), fields),)*
                };
                if <Self as $crate::Shape>::IS_CLOSED {
                    fields.refuse_rest();
                }
                {
                    let Taken { $($field,)* } = &taken;
                    let _ = ($($field,)*);
                    let $at = fields.path();
                    $rules
                }
                Some(Self {
                    $($field: taken.$field?,)*
                })
            }

            fn properties(
                definitions: &mut $crate::Definitions,
            ) -> Vec<$crate::Property> {
                let mut properties = Vec::new();
                $(
                    let description =
                        $crate::schema::prose(concat!($($crate::doc_line!($($field_meta)*)),*));
                    properties.extend($crate::Field::properties(
                        &$crate::typed::<$type, _>($reader),
                        stringify!($field),
                        description,
                        definitions,
                    ));
                )*
                properties
            }

            fn example() -> Option<$crate::stream::Value> {
                [$($example)?].into_iter().next()
            }

            fn stream<'de, D>(deserializer: D) -> Result<Self, D::Error>
            where
                D: $crate::stream::Deserializer<'de>,
            {
                struct Taken {
                    $($field: Option<$type>,)*
                }

                struct FieldsVisitor;

                impl<'de> $crate::stream::Visitor<'de> for FieldsVisitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A>(self, mut object: A) -> Result<$name, A::Error>
                    where
                        A: $crate::stream::MapAccess<'de>,
                    {
                        use $crate::stream::Error as _;

                        let mut taken = Taken { $($field: None,)* };
                        while let Some(name) = $crate::stream::next_name(&mut object)? {
                            $(
                                if name == stringify!($field) {
                                    if taken.$field.is_some() {
                                        // The reader of a tree takes the last one, so a body with
                                        // duplicates is left to it.
                                        return Err(A::Error::duplicate_field(stringify!($field)));
                                    }
                                    let seed = $crate::stream::FieldSeed(&$crate::typed::<$type, _>($reader));
                                    taken.$field = Some(object.next_value_seed(seed)?);
                                    continue;
                                }
                            )*
                            if <$name as $crate::Shape>::IS_CLOSED {
                                return Err(A::Error::unknown_field(&name, &[]));
                            }
                            object.next_value::<$crate::stream::Ignored>()?;
                        }
                        $(
                            if taken.$field.is_none() {
                                taken.$field = $crate::Field::absent(&$crate::typed::<$type, _>($reader));
                            }
                        )*
                        {
                            let Taken { $($field,)* } = &taken;
                            let _ = ($($field,)*);
                            let problems = $crate::Problems::default();
                            let $at = &$crate::FieldPath::root("body", &problems);
                            $rules
                            if !problems.is_empty() {
                                // This reader only finds out whether a body fits; the other one
                                // reports where it does not.
                                return Err(A::Error::custom("breaks a rule between fields"));
                            }
                        }
                        Ok($name {
                            $(
                                $field: taken.$field
                                    .ok_or_else(|| A::Error::missing_field(stringify!($field)))?,
                            )*
                        })
                    }
                }

                deserializer.deserialize_map(FieldsVisitor)
            }
        }
    };
    (
        $(#[$($meta:tt)*])* $vis:vis struct $name:ident { $($fields:tt)* }
        $(example $example:expr;)?
        $(unknown_fields $refused:ident;)?
        $(json_values_at $depth:literal;)?
    ) => {
        $crate::shape! {
            $(#[$($meta)*])*
            $vis struct $name { $($fields)* }
            $(example $example;)?
            $(unknown_fields $refused;)?
            $(json_values_at $depth;)?
            rules |at| {
                let _ = at;
            }
        }
    };
}

/// The text of one attribute if it is a doc comment.
#[doc(hidden)]
#[macro_export]
macro_rules! doc_line {
    (doc = $text:literal) => {
        concat!($text, "\n")
    };
    ($($other:tt)*) => {
        ""
    };
}
