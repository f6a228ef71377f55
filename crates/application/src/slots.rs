//! Limits of concurrent work in one process, so that neither an organization takes all of it nor a user all of the
//! organization's. Use cases take the slots, so that REST, the agent's tools and MCP share them.

use std::ops::Deref;

use labdata_domain::{
    ids::{OrganizationId, UserId},
    people::actor::Actor,
    refusal::Overload,
};
use labdata_limits::SharedSlots;
pub use labdata_limits::Slot;

use crate::Error;

/// Time after which a refused follower is to try again, in seconds.
const FOLLOW_LATER: u32 = 10;

/// Work that takes slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Result in memory, until its last byte is sent.
    Result,
    /// Page of rows, or of a list, in memory. More than its share of the connections: reads that are small
    /// wait for connections only.
    Page,
    /// Series that is read and encoded. Takes memory and a processor.
    Series,
    /// Snapshot that is taken. Takes a thread, up to 200 MiB of memory, and for queries a connection to the
    /// database.
    Snapshot,
    /// Table that is sent while it is read. Holds a connection to the database.
    Stream,
    /// Log, training or stream of events that is followed.
    Follower,
    /// JSON body of over 512 KiB, until its response is made. Takes up to 50 MiB of memory once it is read.
    LargeBody,
    /// JSON body of over 512 KiB with masks, until its response is made. Takes up to 64 MiB of memory, twice that
    /// while it is read.
    MaskBody,
    /// Masks that are decoded and stored. Takes up to 50 MiB of memory, and the processors.
    Masks,
    /// File that is sent within one request. Takes up to 4.5 MB of memory.
    SentFile,
    /// MCP request.
    McpRequest,
    /// Received file of an import. Takes up to 100 MiB of the disk.
    SpooledFile,
    /// Import of a file. Takes up to 700 MiB of memory.
    Import,
    /// Import of a small text, whose rows are few or short.
    SmallImport,
    /// Table of a file that is read for display. Takes a thread and a reader's process.
    ParsedTable,
}

impl Work {
    /// All of it, in the order of the variants.
    const ALL: [Self; 15] = [
        Self::Result,
        Self::Page,
        Self::Series,
        Self::Snapshot,
        Self::Stream,
        Self::Follower,
        Self::LargeBody,
        Self::MaskBody,
        Self::Masks,
        Self::SentFile,
        Self::McpRequest,
        Self::SpooledFile,
        Self::Import,
        Self::SmallImport,
        Self::ParsedTable,
    ];

    /// Maximum number at a time, of one organization and of all. A user has half of the organization's, rounded up.
    const fn slots(self) -> (usize, usize) {
        match self {
            Self::Result => (4, 16),
            Self::Page => (12, 36),
            Self::Series => (3, 4),
            Self::Follower => (32, 128),
            Self::SentFile => (32, 96),
            Self::LargeBody | Self::McpRequest => (8, 32),
            Self::SmallImport => (8, 16),
            Self::SpooledFile => (4, 32),
            Self::Import => (1, 3),
            Self::MaskBody | Self::Masks => (2, 3),
            Self::Snapshot | Self::Stream | Self::ParsedTable => (2, 4),
        }
    }
}

/// The slots of one process.
#[derive(Debug)]
pub struct Slots(Vec<(Work, SharedSlots<OrganizationId, UserId>)>);

impl Default for Slots {
    fn default() -> Self {
        let all = Work::ALL.into_iter().map(|work| {
            let (of_one, of_all) = work.slots();
            (work, SharedSlots::new(of_one, of_all))
        });
        Self(all.collect())
    }
}

impl Slots {
    fn of(&self, work: Work) -> Result<&SharedSlots<OrganizationId, UserId>, Error> {
        let found = self.0.iter().find(|(other, _)| *other == work);
        let missing = || Error::Internal(format!("there are no slots for {work:?}"));
        found.map(|(_, slots)| slots).ok_or_else(missing)
    }

    /// Waits for a slot of the caller.
    ///
    /// # Errors
    /// `Unavailable` if others take 10 s.
    pub async fn enter(&self, work: Work, caller: &Actor) -> Result<Slot, Error> {
        let slots = self.of(work)?;
        let slot = slots.enter(caller.organization, caller.user).await;
        slot.ok_or_else(|| exhausted(1))
    }

    /// Takes a slot of the caller to follow a log, a training or events. Does not wait, as followers stay long.
    ///
    /// # Errors
    /// `Unavailable` if too many are followed.
    pub fn follow(&self, caller: &Actor) -> Result<Slot, Error> {
        // Followers hold their slot for hours, so it is not worth waiting for one.
        let slots = self.of(Work::Follower)?;
        let slot = slots.try_enter(caller.organization, caller.user);
        slot.ok_or_else(|| exhausted(FOLLOW_LATER))
    }
}

fn exhausted(retry_after_seconds: u32) -> Error {
    Error::refused(Overload::Exhausted {
        retry_after_seconds,
    })
}

/// A result, with the slots that it takes until it is dropped.
#[derive(Debug)]
pub struct Held<T, S = Slot> {
    /// The result.
    pub value: T,
    /// Its slots.
    pub slots: S,
}

impl<T, S> Deref for Held<T, S> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
