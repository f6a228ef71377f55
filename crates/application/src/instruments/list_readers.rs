//! Lists the readers of files.

use labdata_domain::{
    instruments::{READERS, Reader},
    people::{actor::Actor, scope::Scope},
};

use crate::Error;

/// The readers, by name.
///
/// # Errors
/// `Forbidden` without the read scope.
pub fn list_readers(actor: &Actor) -> Result<&'static [Reader], Error> {
    actor.require(Scope::Read)?;
    Ok(READERS)
}
