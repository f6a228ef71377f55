//! The platform's HTTP API and the labdata program.
