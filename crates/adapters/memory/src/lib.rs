//! In-memory fakes of the ports, for tests, examples and embedding.
