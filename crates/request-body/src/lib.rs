//! JSON bodies, query strings and paths, read with **every** problem in pydantic's terms.
//!
//! A body is declared once, by [`shape!`]: each field with its type, its documentation and its
//! reader. The declaration yields the struct, its reader and its JSON schema.
//!
//! ```
//! use labdata_request_body::{FieldPath, fields::*, readers::*, shape};
//! use serde_json::json;
//!
//! shape! {
//!     /// The sample to register.
//!     #[derive(Debug)]
//!     pub struct SampleBody {
//!         /// Its name.
//!         pub name: String = required(text(1..=200)),
//!         /// Unique within the plate.
//!         pub labels: Vec<String> = or(json!([]), list(text(..))),
//!         /// Remarks.
//!         pub note: Option<String> = optional(text(..)),
//!     }
//! }
//!
//! let problems = labdata_request_body::read::<SampleBody>("body", json!({ "labels": [1] }));
//! let found: Vec<String> = problems.unwrap_err().into_iter().map(|problem| problem.r#type).collect();
//! assert_eq!(found, ["missing", "string_type"]);
//!
//! let schema = labdata_request_body::json_schema::<SampleBody>();
//! assert_eq!(schema["required"], json!(["name"]));
//! assert_eq!(schema["properties"]["name"]["maxLength"], 200);
//! ```
//!
//! What a response holds is declared once as well, by [`output!`] and [`names!`]: struct, conversion,
//! serialization and schema.
//!
//! # Architecture invariants
//! - No I/O, no HTTP, no `OpenAPI` types: bytes or a JSON value in, a type or its problems out.
//! - Bounds and names of choices come from `labdata-domain` where a rule of the domain sets them.
//! - A field that may be left out may be null as well, with the same meaning.

pub mod data_write;
mod echo;
mod field;
pub mod fields;
pub mod json;
mod number;
pub mod output;
mod path;
mod problem;
pub mod readers;
pub mod schema;
mod shape;
#[doc(hidden)]
pub mod stream;
#[cfg(test)]
mod tests;
mod underflow;
mod wide_integer;

#[doc(hidden)]
pub use field::typed;
pub use field::{Field, Fields};
pub use output::{Output, OutputObject, Timestamp};
pub use path::{FieldPath, Problems};
pub use problem::{LocationStep, ProblemKind, ShapeProblem};
pub use readers::Reader;
pub use schema::{Definitions, Property, Schema, json_schema, object_of};
pub use shape::{Shape, is_closed, read};
