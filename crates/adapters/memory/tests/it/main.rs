//! The fakes keep what the ports promise.

mod contracts;
mod undone;
