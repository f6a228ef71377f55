//! Responses of operations.

use bytes::Bytes;
use labdata_application::{Error, slots::Held};
use labdata_domain::page::{Cursor, Page};
use labdata_limits::Slot;
use labdata_request_body::{Definitions, Output, Schema};

use crate::body::JSON;

/// A response before it is sent.
#[derive(Debug)]
pub struct Reply {
    /// The body's JSON; `None` for a response without a body.
    pub json: Option<Bytes>,
    /// The cursor of the next page of a list.
    pub next: Option<String>,
    /// Counts the response until its last byte is sent.
    pub slot: Option<Slot>,
    /// Effects that reverting an execution does not undo, one sentence each. Tools name them.
    pub effects: Vec<&'static str>,
    /// True if nothing was done, so the response is not stored under an idempotency key.
    pub is_dry_run: bool,
}

/// The description of a successful response.
pub trait Describe {
    /// Its status.
    const STATUS: u16 = 200;

    /// Media types and schemas of its body; empty without a body.
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)>;
}

/// A successful response.
pub trait Respond: Describe {
    /// Serializes it.
    ///
    /// # Errors
    /// [`Error::Internal`] if that fails.
    fn reply(self) -> Result<Reply, Error>;
}

impl<T: Output> Describe for T {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        vec![(JSON, T::schema(definitions))]
    }
}

impl<T: Output> Respond for T {
    fn reply(self) -> Result<Reply, Error> {
        let json = serde_json::to_vec(&self).map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Reply {
            json: Some(json.into()),
            next: None,
            slot: None,
            effects: Vec::new(),
            is_dry_run: false,
        })
    }
}

/// A response and the effects that a tool names beside it.
#[derive(Debug)]
pub struct WithEffects<T> {
    /// The response.
    pub response: T,
    /// The effects.
    pub effects: Vec<&'static str>,
}

impl<T: Describe> Describe for WithEffects<T> {
    const STATUS: u16 = T::STATUS;

    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        T::content(definitions)
    }
}

impl<T: Respond> Respond for WithEffects<T> {
    fn reply(self) -> Result<Reply, Error> {
        Ok(Reply {
            effects: self.effects,
            ..self.response.reply()?
        })
    }
}

/// A 204 response without a body.
#[derive(Clone, Copy, Debug)]
pub struct NoContent;

impl Describe for NoContent {
    const STATUS: u16 = 204;

    fn content(_: &mut Definitions) -> Vec<(&'static str, Schema)> {
        Vec::new()
    }
}

impl Respond for NoContent {
    fn reply(self) -> Result<Reply, Error> {
        Ok(Reply {
            json: None,
            next: None,
            slot: None,
            effects: Vec::new(),
            is_dry_run: false,
        })
    }
}

/// A page for a browser. It is sent by hand.
#[derive(Debug)]
pub enum HtmlPage {}

impl Describe for HtmlPage {
    fn content(_: &mut Definitions) -> Vec<(&'static str, Schema)> {
        vec![("text/html", Schema::of("string"))]
    }
}

/// Plain text. It is sent by hand.
#[derive(Debug)]
pub enum PlainText {}

impl Describe for PlainText {
    fn content(_: &mut Definitions) -> Vec<(&'static str, Schema)> {
        vec![("text/plain", Schema::of("string"))]
    }
}

/// A response that counts until its last byte is sent.
#[derive(Debug)]
pub struct Counted<T> {
    response: T,
    slot: Slot,
}

impl<T> Counted<T> {
    /// Makes a response of a result that holds a slot.
    pub fn of<R>(held: Held<R>, response: impl FnOnce(R) -> T) -> Self {
        Self {
            response: response(held.value),
            slot: held.slots,
        }
    }
}

impl<T: Output> Describe for Counted<T> {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        T::content(definitions)
    }
}

impl<T: Output> Respond for Counted<T> {
    fn reply(self) -> Result<Reply, Error> {
        Ok(Reply {
            slot: Some(self.slot),
            ..self.response.reply()?
        })
    }
}

/// An array, with a `Link` header to the next page if there is one.
#[derive(Debug)]
pub struct Listing<T> {
    items: Vec<T>,
    next: Option<Cursor>,
    slot: Option<Slot>,
}

impl<T> Listing<T> {
    /// Creates a listing without items.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            items: Vec::new(),
            next: None,
            slot: None,
        }
    }

    /// Counts it until its last byte is sent: for lists that can be long.
    #[must_use]
    pub fn counted(mut self, slot: Slot) -> Self {
        self.slot = Some(slot);
        self
    }
}

impl<R: Into<T>, T> From<Page<R>> for Listing<T> {
    fn from(page: Page<R>) -> Self {
        Self {
            items: page.items.into_iter().map(Into::into).collect(),
            next: page.next,
            slot: None,
        }
    }
}

impl<R: Into<T>, T> From<Held<Page<R>>> for Listing<T> {
    fn from(held: Held<Page<R>>) -> Self {
        Self::from(held.value).counted(held.slots)
    }
}

impl<T: Output> Describe for Listing<T> {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        vec![(JSON, Vec::<T>::schema(definitions))]
    }
}

impl<T: Output> Respond for Listing<T> {
    fn reply(self) -> Result<Reply, Error> {
        Ok(Reply {
            next: self.next.map(|next| next.encode()),
            slot: self.slot,
            ..self.items.reply()?
        })
    }
}
