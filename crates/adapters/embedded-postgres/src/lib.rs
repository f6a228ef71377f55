//! Finds, fetches, starts and stops a private PostgreSQL server.
