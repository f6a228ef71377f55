//! Files of forms.

use labdata_domain::files::FilePath;
use serde_json::Value;

use super::Reader;
use crate::{
    path::FieldPath,
    problem::ProblemKind,
    schema::{Definitions, Schema},
};

/// Reads the part of a file, by its file name.
#[derive(Clone, Copy, Debug)]
pub struct FilePart;

impl Reader for FilePart {
    type Output = FilePath;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<FilePath> {
        match value.as_str() {
            None => at.refuse(ProblemKind::value_error(
                "a file with a file name is expected here",
            )),
            // Browsers send this where no file was chosen.
            Some("") => at.refuse(ProblemKind::missing()),
            Some(name) => match FilePath::parse(name) {
                Ok(path) => Some(path),
                Err(error) => at.refuse(ProblemKind::value_error(&error.to_string())),
            },
        }
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("string")
            .with("format", "binary")
            .with("contentMediaType", "application/octet-stream")
    }
}
