//! Paths of objects in a storage.

use labdata_domain::{files::ObjectKey, ids::OrganizationId};
use object_store::path::Path;

/// `<organization>/<two hex digits>/<object>`. The digits are the object's last two, which are
/// random: no directory grows large.
pub(crate) fn object_path(organization: OrganizationId, object: ObjectKey) -> Path {
    let [.., last] = object.as_uuid().into_bytes();
    Path::from_iter([
        organization.to_string(),
        format!("{last:02x}"),
        object.to_string(),
    ])
}

/// The ids in a path below a prefix; `None` for a path that [`object_path`] never returns.
pub(crate) fn ids(path: &Path, prefix: &Path) -> Option<(OrganizationId, ObjectKey)> {
    let parts: Vec<_> = path.prefix_match(prefix)?.collect();
    let [organization, _, object] = parts.as_slice() else {
        return None;
    };
    let organization = organization.as_ref().parse().ok()?;
    let object = object.as_ref().parse().ok()?;
    // Ids parse in several spellings, and the platform writes only one.
    let expected = object_path(organization, object);
    expected
        .parts()
        .eq(parts.iter().cloned())
        .then_some((organization, object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_path_is_made_of_ids_alone() {
        let path = object_path(
            OrganizationId::new(Uuid::from_u128(1)),
            ObjectKey::new(Uuid::from_u128(0xab)),
        );
        assert_eq!(
            path.as_ref(),
            "00000000-0000-0000-0000-000000000001/ab/00000000-0000-0000-0000-0000000000ab"
        );
    }

    #[test]
    fn only_an_object_path_reads_back_as_ids() {
        let (organization, object) = (
            OrganizationId::new(Uuid::from_u128(1)),
            ObjectKey::new(Uuid::from_u128(0xab)),
        );
        let own = object_path(organization, object).to_string();
        let read = |path: &str| ids(&Path::from(path), &Path::from("a/b"));
        assert_eq!(read(&format!("a/b/{own}")), Some((organization, object)));
        for other in [
            own.clone(),
            format!("a/b/c/{own}"),
            format!("a/b/{}", own.replace("/ab/", "/ac/")),
            format!("a/b/{}", own.to_uppercase()),
            "a/b/incoming/x".to_owned(),
            "a/b".to_owned(),
        ] {
            assert_eq!(read(&other), None, "{other}");
        }
    }
}
