//! Declared responses: what is serialized is what the schema describes.

use serde_json::json;

use crate::{Definitions, Output, Schema, output};

output! {
    /// A label.
    struct LabelView as "Label" from name: Option<String> {
        /// Its kind.
        r#type: &'static str = "label",
        /// Left out where it has none.
        #[optional]
        #[example = "A1"]
        name: Option<String> = name,
    }
}

#[test]
fn an_optional_field_is_left_out_and_never_null() {
    let mut definitions = Definitions::new("#/");
    LabelView::schema(&mut definitions);
    let label = json!({
        "type": "object",
        "description": "A label.",
        "properties": {
            "type": { "type": "string", "description": "Its kind." },
            "name": {
                "type": "string",
                "description": "Left out where it has none.",
                "example": "A1",
            },
        },
        "required": ["type"],
    });
    assert_eq!(definitions.into_schemas()["Label"], label);
    let view = |name: Option<&str>| LabelView::from(name.map(str::to_owned));
    assert_eq!(json!(view(None)), json!({ "type": "label" }));
    assert_eq!(
        json!(view(Some("A1"))),
        json!({ "type": "label", "name": "A1" })
    );
}

#[test]
#[should_panic(expected = "two types have the schema Plate")]
fn two_types_with_the_name_of_one_schema_are_found() {
    // Functions, since two closures of one function have one name.
    fn object(_: &mut Definitions) -> Schema {
        Schema::of("object")
    }
    fn string(_: &mut Definitions) -> Schema {
        Schema::of("string")
    }
    let mut definitions = Definitions::new("#/");
    let one = definitions.define("Plate", object);
    assert_eq!(definitions.define("Plate", string), one);
}
