//! Readers of tables out of files, as confined processes of this program (ADR 42).
//!
//! Each file has a process, which is this program with a hidden command. It confines itself before the first
//! byte of the file arrives ([`read_table`]): no file, no network, no other program, and bounds of memory and
//! time that the kernel holds. So a file can harm nothing but its reader.
//!
//! **Invariants.** The reader has no file but its two pipes, and no environment. Its memory is bounded by
//! [`MAX_MEMORY`], its processor time by [`MAX_CPU_TIME`]. It dies when what runs it is dropped.

mod child;
mod reader;

use std::time::Duration;

pub use child::ChildTableReader;
pub use reader::read_table;

/// Memory of a reader, in bytes: heap and anonymous mappings.
pub const MAX_MEMORY: u64 = 248 << 20;

/// Processor time of a reader.
pub const MAX_CPU_TIME: Duration = Duration::from_mins(1);
