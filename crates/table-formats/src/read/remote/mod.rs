//! Reading of a file in another process, which a hostile file may harm.
//!
//! The process that has the file asks another one to read it, over two pipes. The reader has no file: it asks
//! for the bytes that it needs, and sends what it found. Nothing that it sends is believed, because a file may
//! have taken it over.
//!
//! ```text
//! platform                          reader
//!   Request {options, rows} ──────▶
//!                           ◀────── ReadAt (offset, length), any number of times
//!   Data, or SourceFailed   ──────▶
//!                           ◀────── Head {reading, columns, doubts, …}
//!   Target                  ──────▶
//!                           ◀────── Rows, any number of times, between them ReadAt
//!                           ◀────── End {counts}
//! ```
//!
//! Instead of all rows, a request may ask for a preview, which is one message. A refusal (`Failed`) may come at
//! any time, and is the last message.

mod cells;
mod client;
mod frames;
mod messages;
mod server;

pub use client::{Connection, RemoteTable, open_remote, open_remote_import, preview_remote};
pub use server::serve;

#[cfg(test)]
mod tests;
