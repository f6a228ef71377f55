//! Where an object lies in its storage.

use labdata_domain::{file::ObjectKey, ids::OrganizationId};
use object_store::path::Path;

/// `<organization>/<two hex digits>/<object>`: the digits are the object's last, which are random,
/// so that no directory grows large.
pub(crate) fn place(organization: OrganizationId, object: ObjectKey) -> Path {
    let [.., last] = object.as_uuid().into_bytes();
    Path::from_iter([
        organization.to_string(),
        format!("{last:02x}"),
        object.to_string(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_place_is_made_of_ids_alone() {
        let place = place(
            OrganizationId::new(Uuid::from_u128(1)),
            ObjectKey::new(Uuid::from_u128(0xab)),
        );
        assert_eq!(
            place.as_ref(),
            "00000000-0000-0000-0000-000000000001/ab/00000000-0000-0000-0000-0000000000ab"
        );
    }
}
