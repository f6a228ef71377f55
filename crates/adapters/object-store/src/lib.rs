//! Object storage: local disk and the clouds; signed URLs; checksums.
