//! Tests of the reader of files, with the real packages in the real sandbox.

mod python;
mod sandbox;
mod support;
