//! Paths of values within a request, and the problems reported there.

use std::cell::{Cell, RefCell};

use serde_json::{Map, Value};

use crate::{
    echo,
    problem::{LocationStep, ProblemKind, ShapeProblem},
};

/// Maximum number of problems in a response; one more counts the rest.
pub(crate) const MAX_PROBLEMS: usize = 1_000;

/// The problems found so far.
#[derive(Debug, Default)]
pub struct Problems {
    found: RefCell<Vec<(ProblemKind, Vec<LocationStep>)>>,
    left_out: Cell<usize>,
}

impl Problems {
    /// True while no problem has been reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    fn push(&self, kind: ProblemKind, loc: impl FnOnce() -> Vec<LocationStep>) {
        let mut found = self.found.borrow_mut();
        // A body can have a problem at each of its values, of which there may be a million.
        if found.len() < MAX_PROBLEMS {
            found.push((kind, loc()));
        } else {
            self.left_out.set(self.left_out.get() + 1);
        }
    }

    /// The problems, each with the value at its path. `documents` holds the parts of the request
    /// by name (`body`, `query`, `path`), as received.
    #[must_use]
    pub fn explain(self, documents: &Map<String, Value>) -> Vec<ShapeProblem> {
        let left_out = self.left_out.get();
        let mut problems: Vec<ShapeProblem> = self
            .found
            .into_inner()
            .into_iter()
            .map(|(kind, loc)| {
                // Values were consumed while they were read, so they are looked up in the document.
                let input = look_up(documents, &loc, kind == ProblemKind::missing());
                ShapeProblem::new(kind, loc, input)
            })
            .collect();
        if left_out > 0 {
            problems.push(ShapeProblem::new(
                ProblemKind::too_many(left_out),
                Vec::new(),
                Value::Null,
            ));
        }
        problems
    }
}

/// The value at a path, or the object around it for a field that is absent.
fn look_up(documents: &Map<String, Value>, loc: &[LocationStep], around: bool) -> Value {
    let steps = match loc.split_last() {
        // A missing field has no value, so the object that lacks it is repeated, as pydantic does.
        Some((_, rest)) if around && !rest.is_empty() => rest,
        _ => loc,
    };
    let Some((LocationStep::Name(root), steps)) = steps.split_first() else {
        return Value::Null;
    };
    let start = documents.get(root);
    let found = steps
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

/// The path of a value within the request. Problems with the value are reported to it.
#[derive(Clone, Copy, Debug)]
pub struct FieldPath<'a> {
    parent: Option<&'a FieldPath<'a>>,
    step: Step<'a>,
    problems: &'a Problems,
}

impl<'a> FieldPath<'a> {
    /// The path of a whole part of the request: `body`, `query` or `path`.
    #[must_use]
    pub const fn root(part: &'static str, problems: &'a Problems) -> Self {
        Self {
            parent: None,
            step: Step::Name(part),
            problems,
        }
    }

    /// The path of a field of this object.
    #[must_use]
    pub const fn field(&'a self, name: &'a str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Name(name),
            problems: self.problems,
        }
    }

    /// The path of an item of this list.
    #[must_use]
    pub const fn item(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            step: Step::Index(index),
            problems: self.problems,
        }
    }

    /// Reports a problem with the value here.
    pub fn report(&self, kind: ProblemKind) {
        // The location is built for problems only; values that fit cost no memory.
        self.problems.push(kind, || self.location());
    }

    /// Reports a problem and returns `None`, as readers do.
    #[expect(clippy::must_use_candidate, reason = "it is called for its report")]
    pub fn refuse<T>(&self, kind: ProblemKind) -> Option<T> {
        self.report(kind);
        None
    }

    fn location(&self) -> Vec<LocationStep> {
        let mut steps = Vec::new();
        let mut path = Some(self);
        while let Some(here) = path {
            steps.push(match here.step {
                Step::Name(name) => LocationStep::Name(name.to_owned()),
                Step::Index(index) => LocationStep::Index(index),
            });
            path = here.parent;
        }
        steps.reverse();
        steps
    }
}

/// The result of a reader that reported no problem.
pub(crate) fn fitting<T>(read: impl FnOnce(&FieldPath<'_>) -> Option<T>) -> Option<T> {
    let problems = Problems::default();
    read(&FieldPath::root("body", &problems)).filter(|_| problems.is_empty())
}
