//! Reads bodies, query strings and paths into types, and collects **every** problem on the way.
//!
//! A type that can be read implements [`Shape`]. Its `read` takes the fields of an object one by
//! one, each with a reader from [`readers`], and builds the type only at the end, so that no
//! problem hides another:
//!
//! ```
//! use labdata_request_body::{Fields, Place, Shape, readers::{choice, list, text}};
//! use serde_json::Value;
//!
//! struct Sample { name: String, labels: Vec<String>, note: Option<String> }
//!
//! impl Shape for Sample {
//!     fn read(value: Value, place: &Place<'_>) -> Option<Self> {
//!         let mut fields = Fields::of(value, place)?;
//!         let name = fields.required("name", text(1..=200));
//!         let labels = fields.or("labels", Vec::new(), list(text(..)));
//!         let note = fields.nullable("note", text(..));
//!         Some(Self { name: name?, labels: labels?, note: note? })
//!     }
//! }
//! ```

use std::cell::RefCell;

use serde_json::{Map, Value};

mod echo;
mod problem;
pub mod readers;
#[cfg(test)]
mod tests;

pub use problem::{Kind, LocationStep, ShapeProblem};

/// The most problems that one answer holds; one more counts the rest.
const MOST_PROBLEMS: usize = 1_000;

/// A type that can be read from a body, a query string or a path.
pub trait Shape: Sized {
    /// Reads the value. `None` when it does not fit; the place knows why then.
    fn read(value: Value, place: &Place<'_>) -> Option<Self>;
}

/// Of a request part from which nothing is read.
impl Shape for () {
    fn read(_: Value, _: &Place<'_>) -> Option<Self> {
        Some(())
    }
}

/// The problems found so far.
#[derive(Debug, Default)]
pub struct Problems {
    found: RefCell<Vec<(Kind, Vec<LocationStep>)>>,
    left_out: std::cell::Cell<usize>,
}

impl Problems {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    fn push(&self, kind: Kind, loc: impl FnOnce() -> Vec<LocationStep>) {
        let mut found = self.found.borrow_mut();
        if found.len() < MOST_PROBLEMS {
            found.push((kind, loc()));
        } else {
            self.left_out.set(self.left_out.get() + 1);
        }
    }

    /// The problems, each with the value that stands at its place in the documents: the parts of
    /// the request by their names (`body`, `query`, `path`), as they were before they were read.
    #[must_use]
    pub fn explain(self, documents: &Map<String, Value>) -> Vec<ShapeProblem> {
        let left_out = self.left_out.get();
        let mut problems: Vec<ShapeProblem> = self
            .found
            .into_inner()
            .into_iter()
            .map(|(kind, loc)| {
                let input = look_up(documents, &loc, kind == Kind::missing());
                ShapeProblem::new(kind, loc, input)
            })
            .collect();
        if left_out > 0 {
            problems.push(ShapeProblem::new(
                Kind::too_many(left_out),
                Vec::new(),
                Value::Null,
            ));
        }
        problems
    }
}

/// What stands there, or around it for a field that is absent.
fn look_up(documents: &Map<String, Value>, loc: &[LocationStep], around: bool) -> Value {
    let way = match loc.split_last() {
        Some((_, rest)) if around && !rest.is_empty() => rest,
        _ => loc,
    };
    let Some((LocationStep::Name(root), way)) = way.split_first() else {
        return Value::Null;
    };
    let start = documents.get(root);
    let found = way
        .iter()
        .try_fold(start, |value, step| match (value, step) {
            (Some(value), LocationStep::Name(name)) => Some(value.get(name)),
            (Some(value), LocationStep::Index(index)) => Some(value.get(index)),
            (None, _) => None,
        });
    found.flatten().map_or(Value::Null, echo::echo)
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

/// The place of a value in the request, and where problems with it are told.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    around: Option<&'a Place<'a>>,
    step: Step<'a>,
    problems: &'a Problems,
}

impl<'a> Place<'a> {
    /// The place of a whole part of the request: `body`, `query` or `path`.
    #[must_use]
    pub const fn root(part: &'static str, problems: &'a Problems) -> Self {
        Self {
            around: None,
            step: Step::Name(part),
            problems,
        }
    }

    /// The place of a field in here.
    #[must_use]
    pub const fn field(&'a self, name: &'a str) -> Self {
        Self {
            around: Some(self),
            step: Step::Name(name),
            problems: self.problems,
        }
    }

    /// The place of an item in here.
    #[must_use]
    pub const fn item(&'a self, index: usize) -> Self {
        Self {
            around: Some(self),
            step: Step::Index(index),
            problems: self.problems,
        }
    }

    /// Tells a problem with what stands here. Always `None`, so that a reader can return it.
    #[expect(
        clippy::must_use_candidate,
        reason = "it is called for what it tells the place"
    )]
    pub fn refuse<T>(&self, kind: Kind) -> Option<T> {
        self.problems.push(kind, || self.location());
        None
    }

    fn location(&self) -> Vec<LocationStep> {
        let mut steps = Vec::new();
        let mut place = Some(self);
        while let Some(here) = place {
            steps.push(match here.step {
                Step::Name(name) => LocationStep::Name(name.to_owned()),
                Step::Index(index) => LocationStep::Index(index),
            });
            place = here.around;
        }
        steps.reverse();
        steps
    }
}

/// The fields of an object, taken one by one. Fields that nobody takes are ignored.
#[derive(Debug)]
pub struct Fields<'a> {
    fields: Map<String, Value>,
    place: &'a Place<'a>,
}

impl<'a> Fields<'a> {
    /// The fields of the value; `None` (and a problem) when it is no object.
    #[must_use]
    pub fn of(value: Value, place: &'a Place<'a>) -> Option<Self> {
        match value {
            Value::Object(fields) => Some(Self { fields, place }),
            _ => place.refuse(Kind::model_attributes_type()),
        }
    }

    /// A field that must be there.
    pub fn required<T>(&mut self, name: &str, read: impl Reader<T>) -> Option<T> {
        let place = self.place.field(name);
        match self.fields.remove(name) {
            Some(value) => read(value, &place),
            None => place.refuse(Kind::missing()),
        }
    }

    /// A field that may be absent, but not null.
    pub fn or<T>(&mut self, name: &str, default: T, read: impl Reader<T>) -> Option<T> {
        let place = self.place.field(name);
        match self.fields.remove(name) {
            Some(value) => read(value, &place),
            None => Some(default),
        }
    }

    /// A field that may be absent or null, both of which read as `Some(None)`.
    pub fn nullable<T>(&mut self, name: &str, read: impl Reader<T>) -> Option<Option<T>> {
        let place = self.place.field(name);
        match self.fields.remove(name) {
            None | Some(Value::Null) => Some(None),
            Some(value) => read(value, &place).map(Some),
        }
    }

    /// Tells a problem with a field's value once it is read, such as one that depends on another
    /// field.
    #[expect(
        clippy::must_use_candidate,
        reason = "it is called for what it tells the place"
    )]
    pub fn refuse<T>(&self, name: &str, kind: Kind) -> Option<T> {
        self.place.field(name).refuse(kind)
    }
}

/// Reads one value, or tells the place why not.
pub trait Reader<T>: Fn(Value, &Place<'_>) -> Option<T> {}

impl<T, F: Fn(Value, &Place<'_>) -> Option<T>> Reader<T> for F {}

/// Reads a value of a request part by itself, for tests and for parts that need no extractor.
///
/// # Errors
/// Every problem.
pub fn read<T: Shape>(part: &'static str, value: Value) -> Result<T, Vec<ShapeProblem>> {
    let problems = Problems::default();
    let copy = value.clone();
    match T::read(value, &Place::root(part, &problems)) {
        Some(read) if problems.is_empty() => Ok(read),
        _ => Err(problems.explain(&Map::from_iter([(part.to_owned(), copy)]))),
    }
}
