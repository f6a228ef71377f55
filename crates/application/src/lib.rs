//! The platform's use cases, one file each.
