//! `/unsubscribe`

pub mod unsubscribe;
