//! The declaration of objects.

/// Declares an object of a response: `field: Type = value`, where the value is an expression of what
/// the object is made from.
///
/// Yields the struct, its conversion, its serialization and its JSON schema, which is named by `as`;
/// without a name it stands where it is used. Doc comments become descriptions. Without `from` there is no
/// conversion, and the fields have no values. An enum, `Variant(Type)`, is one of several objects.
/// Attributes of a field:
///
/// - `#[example = …]`: an example of its value
/// - `#[optional]`: an `Option` that is left out where it is `None`
/// - `#[flatten]`: an object whose fields stand beside those of the outer one
///
/// ```
/// use labdata_request_body::output;
/// use serde_json::json;
///
/// struct Sample {
///     label: String,
///     volume: Option<f64>,
/// }
///
/// output! {
///     /// A sample.
///     #[derive(Debug)]
///     pub struct SampleView as "Sample" from sample: Sample {
///         /// Unique within the plate.
///         #[example = "A1"]
///         name: String = sample.label,
///         /// In µl.
///         volume: Option<f64> = sample.volume,
///     }
/// }
///
/// let view = SampleView::from(Sample { label: "A1".to_owned(), volume: None });
/// assert_eq!(serde_json::to_value(&view).unwrap(), json!({ "name": "A1", "volume": null }));
/// ```
#[macro_export]
macro_rules! output {
    (
        $(#[$($meta:tt)*])*
        $vis:vis struct $name:ident $(as $schema:literal)? $(from $source:ident: $source_type:ty)? {
            $(
                $(#[$($field_meta:tt)*])*
                $field_vis:vis $field:ident: $type:ty $(= $value:expr)?
            ),* $(,)?
        }
    ) => {
        $(#[$($meta)*])*
        $vis struct $name {
            $(
                #[doc = concat!($($crate::doc_line!($($field_meta)*)),*)]
                $field_vis $field: $type,
            )*
        }

        $crate::output_from! {
            $name $(from $source: $source_type)? { $($field $(= $value)?,)* }
        }

        impl $crate::OutputObject for $name {
            fn properties(definitions: &mut $crate::Definitions) -> Vec<$crate::Property> {
                let mut properties = Vec::new();
                $(
                    properties.extend($crate::output_property!(
                        definitions, $field: $type, [],
                        concat!($($crate::doc_line!($($field_meta)*)),*);
                        $([$($field_meta)*])*
                    ));
                )*
                properties
            }

            fn serialize_fields<M: $crate::output::serde::ser::SerializeMap>(
                &self,
                map: &mut M,
            ) -> Result<(), M::Error> {
                $($crate::output_entry!(map, $field, &self.$field; $([$($field_meta)*])*);)*
                Ok(())
            }
        }

        impl $crate::output::serde::Serialize for $name {
            fn serialize<S: $crate::output::serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                $crate::output::serialize_object(self, serializer)
            }
        }

        impl $crate::Output for $name {
            fn schema(definitions: &mut $crate::Definitions) -> $crate::Schema {
                let schema = |definitions: &mut $crate::Definitions| {
                    $crate::output::object_schema(
                        concat!($($crate::doc_line!($($meta)*)),*),
                        <Self as $crate::OutputObject>::properties(definitions),
                    )
                };
                $crate::output_definition!(definitions, schema $(, $schema)?)
            }
        }
    };
    (
        $(#[$($meta:tt)*])*
        $vis:vis enum $name:ident as $schema:literal {
            $(
                $(#[$($variant_meta:tt)*])*
                $variant:ident($type:ty)
            ),* $(,)?
        }
    ) => {
        $(#[$($meta)*])*
        $vis enum $name {
            $($(#[$($variant_meta)*])* $variant($type),)*
        }

        impl $crate::output::serde::Serialize for $name {
            fn serialize<S: $crate::output::serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(value) => $crate::output::serde::Serialize::serialize(value, serializer),)*
                }
            }
        }

        impl $crate::Output for $name {
            fn schema(definitions: &mut $crate::Definitions) -> $crate::Schema {
                definitions.define($schema, |definitions| {
                    let schema = $crate::Schema::one_of([$(
                        <$type as $crate::Output>::schema(definitions).described(
                            &$crate::schema::prose(concat!($($crate::doc_line!($($variant_meta)*)),*)),
                        ),
                    )*]);
                    schema.described(&$crate::schema::prose(concat!($($crate::doc_line!($($meta)*)),*)))
                })
            }
        }
    };
}

/// The schema of an object, by its name if it has one.
#[doc(hidden)]
#[macro_export]
macro_rules! output_definition {
    ($definitions:ident, $schema:ident) => {
        $schema($definitions)
    };
    ($definitions:ident, $schema:ident, $name:literal) => {
        $definitions.define($name, $schema)
    };
}

/// The conversion into an object, where it is made from something.
#[doc(hidden)]
#[macro_export]
macro_rules! output_from {
    ($name:ident { $($field:ident,)* }) => {};
    ($name:ident from $source:ident: $source_type:ty { $($field:ident = $value:expr,)* }) => {
        impl From<$source_type> for $name {
            fn from($source: $source_type) -> Self {
                Self {
                    $($field: $value,)*
                }
            }
        }
    };
}

/// The properties of a field, which its attributes change.
#[doc(hidden)]
#[macro_export]
macro_rules! output_property {
    (
        $definitions:ident, $field:ident: $type:ty, [$($example:expr)?], $doc:expr;
        [flatten] $($rest:tt)*
    ) => {
        <$type as $crate::OutputObject>::properties($definitions)
    };
    (
        $definitions:ident, $field:ident: $type:ty, [$($example:expr)?], $doc:expr;
        [optional] $($rest:tt)*
    ) => {
        $crate::output_property!(
            $definitions, $field: <$type as $crate::output::Optional>::Given, [$($example)?], $doc;
            $($rest)*
        )
        .map(|property| $crate::Property { is_required: false, ..property })
    };
    (
        $definitions:ident, $field:ident: $type:ty, [], $doc:expr;
        [example = $example:expr] $($rest:tt)*
    ) => {
        $crate::output_property!($definitions, $field: $type, [$example], $doc; $($rest)*)
    };
    (
        $definitions:ident, $field:ident: $type:ty, [$($example:expr)?], $doc:expr;
        [$($other:tt)*] $($rest:tt)*
    ) => {
        $crate::output_property!($definitions, $field: $type, [$($example)?], $doc; $($rest)*)
    };
    ($definitions:ident, $field:ident: $type:ty, [$($example:expr)?], $doc:expr;) => {
        [$crate::Property {
            name: const { $crate::output::field_name(stringify!($field)) },
            description: $crate::schema::prose($doc),
            schema: <$type as $crate::Output>::schema($definitions)$(.with("example", $example))?,
            is_required: true,
            default: None,
        }]
    };
}

/// Adds a field to an object that is serialized.
#[doc(hidden)]
#[macro_export]
macro_rules! output_entry {
    ($map:ident, $field:ident, $value:expr;) => {
        $map.serialize_entry(const { $crate::output::field_name(stringify!($field)) }, $value)?
    };
    ($map:ident, $field:ident, $value:expr; [flatten] $($rest:tt)*) => {
        $crate::OutputObject::serialize_fields($value, $map)?
    };
    ($map:ident, $field:ident, $value:expr; [optional] $($rest:tt)*) => {
        if let Some(value) = $value {
            $map.serialize_entry(const { $crate::output::field_name(stringify!($field)) }, value)?;
        }
    };
    ($map:ident, $field:ident, $value:expr; [$($other:tt)*] $($rest:tt)*) => {
        $crate::output_entry!($map, $field, $value; $($rest)*)
    };
}
