//! The `labdata` program.
fn main() {}
