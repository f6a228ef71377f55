//! All SQL of the platform: diesel on PostgreSQL.
