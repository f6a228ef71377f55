//! Entities, state machines and validation of the laboratory data platform.
