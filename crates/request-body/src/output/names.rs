//! Texts that are one of a few names.

/// Declares types of fields whose value is one of the names of a domain type. The schema bears the
/// type's name.
///
/// ```
/// labdata_request_body::names! {
///     /// Color of a label.
///     pub LabelColor = ["red", "green"];
/// }
/// assert_eq!(serde_json::to_string(&LabelColor::from("red")).unwrap(), "\"red\"");
/// ```
#[macro_export]
macro_rules! names {
    ($($(#[doc = $doc:literal])+ $vis:vis $name:ident = $names:expr;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        $vis struct $name(&'static str);

        impl From<&'static str> for $name {
            fn from(name: &'static str) -> Self {
                Self(name)
            }
        }

        impl $crate::output::serde::Serialize for $name {
            fn serialize<S: $crate::output::serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.0)
            }
        }

        impl $crate::Output for $name {
            fn schema(definitions: &mut $crate::Definitions) -> $crate::Schema {
                definitions.define(stringify!($name), |_| {
                    $crate::Schema::of("string")
                        .with("enum", Vec::from_iter($names))
                        .with("description", $crate::schema::prose(concat!($($doc, "\n"),+)))
                })
            }
        }
    )+};
}
