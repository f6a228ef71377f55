//! JSON schemas (draft 2020-12) of declared shapes: for the `OpenAPI` document and for tools of
//! language models.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::Shape;

/// A JSON schema under construction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema(Map<String, Value>);

impl Schema {
    /// The schema of one JSON type, such as `string`.
    #[must_use]
    pub fn of(json_type: &str) -> Self {
        Self::default().with("type", json_type)
    }

    /// The schema of several JSON types.
    #[must_use]
    pub fn of_types(json_types: &[&str]) -> Self {
        Self::default().with("type", json_types)
    }

    /// The schema of any JSON value.
    #[must_use]
    pub fn any() -> Self {
        Self::of_types(&["string", "number", "boolean", "object", "array", "null"])
    }

    /// The schema of values that fit exactly one of these.
    #[must_use]
    pub fn one_of(choices: impl IntoIterator<Item = Self>) -> Self {
        let choices: Vec<Value> = choices.into_iter().map(Into::into).collect();
        Self::default().with("oneOf", choices)
    }

    /// Adds or replaces a keyword, such as `maxLength`.
    #[must_use]
    pub fn with(mut self, keyword: &str, value: impl Into<Value>) -> Self {
        self.0.insert(keyword.to_owned(), value.into());
        self
    }

    /// Adds a description, if there is one.
    #[must_use]
    pub fn described(self, description: &str) -> Self {
        if description.is_empty() {
            self
        } else {
            self.with("description", description)
        }
    }

    /// Allows null as well.
    #[must_use]
    pub fn or_null(mut self) -> Self {
        // Any value may be null already.
        if self.0.is_empty() {
            return self;
        }
        match self.0.get_mut("type") {
            Some(Value::Array(types)) if types.iter().any(|one| one == "null") => {}
            Some(Value::Array(types)) => types.push("null".into()),
            Some(one) => *one = json!([one.take(), "null"]),
            None => return Self::one_of([self, Self::of("null")]),
        }
        if let Some(Value::Array(choices)) = self.0.get_mut("enum") {
            // `enum` permits what it lists alone, so null in `type` is not enough.
            choices.push(Value::Null);
        }
        self
    }
}

impl From<Schema> for Value {
    fn from(schema: Schema) -> Self {
        Self::Object(schema.0)
    }
}

/// One field of a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// The field's name in the request.
    pub name: &'static str,
    /// The field's documentation.
    pub description: String,
    /// The schema of a value that is given.
    pub schema: Schema,
    /// True if the field cannot be left out.
    pub is_required: bool,
    /// The value of a field that is left out.
    pub default: Option<Value>,
}

impl Property {
    /// The schema of the field in an object, where it may be null unless it is required.
    #[must_use]
    pub fn in_object(self) -> Schema {
        let schema = if self.is_required {
            self.schema
        } else {
            self.schema.or_null()
        };
        let schema = match self.default {
            Some(default) => schema.with("default", default),
            None => schema,
        };
        schema.described(&self.description)
    }

    /// The schema of the field as a parameter, which is never null and described elsewhere.
    #[must_use]
    pub fn as_parameter(self) -> Schema {
        match self.default {
            Some(default) => self.schema.with("default", default),
            None => self.schema,
        }
    }
}

/// Schemas of shapes that are referenced by name, or stand where they are used.
#[derive(Clone, Debug)]
pub struct Definitions {
    /// `None` if schemas stand where they are used.
    prefix: Option<&'static str>,
    schemas: BTreeMap<&'static str, Value>,
    /// The function that made each schema, by the schema's name.
    makers: BTreeMap<&'static str, &'static str>,
}

impl Definitions {
    /// No schemas yet. References are `prefix` and a name, such as `#/components/schemas/…`.
    #[must_use]
    pub const fn new(prefix: &'static str) -> Self {
        Self {
            prefix: Some(prefix),
            schemas: BTreeMap::new(),
            makers: BTreeMap::new(),
        }
    }

    /// No references: each schema stands where it is used. Some providers of models refuse `$ref`.
    #[must_use]
    pub const fn inline() -> Self {
        Self {
            prefix: None,
            schemas: BTreeMap::new(),
            makers: BTreeMap::new(),
        }
    }

    /// A reference to the schema of `T`, which is added.
    pub fn reference<T: Shape>(&mut self) -> Schema {
        self.define(T::NAME, object::<T>)
    }

    /// A reference to the schema of that name, which is added.
    ///
    /// # Panics
    /// In builds with debug assertions, if another function made the schema of that name: the document would
    /// describe both types by the first one's fields.
    pub fn define<F: FnOnce(&mut Self) -> Schema>(
        &mut self,
        name: &'static str,
        schema: F,
    ) -> Schema {
        let maker = std::any::type_name::<F>();
        debug_assert_eq!(
            *self.makers.entry(name).or_insert(maker),
            maker,
            "two types have the schema {name}"
        );
        if !self.schemas.contains_key(name) {
            // Ends the recursion of a schema that contains itself.
            self.schemas.insert(name, Value::Null);
            let schema = schema(self);
            if self.prefix.is_none() {
                self.schemas.remove(name);
                return schema;
            }
            self.schemas.insert(name, schema.into());
        }
        self.named(name)
    }

    /// A reference to a schema that is added elsewhere.
    #[must_use]
    pub fn named(&self, name: &str) -> Schema {
        match self.prefix {
            Some(prefix) => Schema::default().with("$ref", format!("{prefix}{name}")),
            None => Schema::of("object"),
        }
    }

    /// The schemas by name.
    #[must_use]
    pub fn into_schemas(self) -> BTreeMap<&'static str, Value> {
        self.schemas
    }
}

/// The self-contained JSON schema of a shape; shapes within it stand where they are used.
#[must_use]
pub fn json_schema<T: Shape>() -> Value {
    object::<T>(&mut Definitions::inline()).into()
}

/// The schema of a shape as an object.
fn object<T: Shape>(definitions: &mut Definitions) -> Schema {
    let mut schema = object_of(T::properties(definitions));
    if T::IS_CLOSED {
        schema = schema.with("additionalProperties", false);
    }
    schema.described(&prose(T::DESCRIPTION))
}

/// The schema of a request's object with these fields.
#[must_use]
pub fn object_of(fields: Vec<Property>) -> Schema {
    let mut required = Vec::new();
    let mut properties = Map::new();
    for property in fields {
        let name = property.name;
        if property.is_required {
            required.push(name);
        }
        properties.insert(name.to_owned(), property.in_object().into());
    }
    let mut schema = Schema::of("object").with("properties", properties);
    if !required.is_empty() {
        schema = schema.with("required", required);
    }
    schema
}

/// The text of doc comments: without the space at the start of each line.
#[must_use]
pub fn prose(doc: &str) -> String {
    let lines: Vec<&str> = doc.lines().map(str::trim).collect();
    lines.join("\n").trim().to_owned()
}
