//! Saved views: addresses of the console under a name, for everyone of the organization.

use time::OffsetDateTime;

use crate::{
    conflict::Conflict,
    ids::{OrganizationId, SavedViewId, UserId},
    people::{actor::Actor, scope::Scope},
    refusal::{ErrorCode, RefusalKind, Refuse},
};

/// Maximum number of characters of a view's name.
pub const MAX_VIEW_NAME_LENGTH: usize = 200;

/// Maximum number of characters of a view's address. It may hold a SQL statement, percent-encoded.
pub const MAX_VIEW_ADDRESS_LENGTH: usize = 30_000;

/// Maximum number of views of an organization: the list has no pages.
pub const MAX_SAVED_VIEWS: usize = 1_000;

/// A saved view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedView {
    /// Id.
    pub id: SavedViewId,
    /// Organization that sees it.
    pub organization: OrganizationId,
    /// Name, unique within the organization.
    pub name: String,
    /// Address of the view within the console, from its `#` on.
    pub address: String,
    /// True if Home lists it.
    pub is_pinned: bool,
    /// User who saved it.
    pub created_by: UserId,
    /// Creation time.
    pub created_at: OffsetDateTime,
}

/// Change of a view. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedViewChange {
    /// Name.
    pub name: Option<String>,
    /// Address.
    pub address: Option<String>,
    /// True to list it in Home.
    pub is_pinned: Option<bool>,
}

impl SavedView {
    /// The conflict of a view whose name another one of the organization has.
    #[must_use]
    pub fn name_taken(&self) -> Conflict {
        Conflict::SavedViewName(self.name.clone())
    }

    /// The view after a change.
    #[must_use]
    pub fn changed(self, change: SavedViewChange) -> Self {
        Self {
            name: change.name.unwrap_or(self.name),
            address: change.address.unwrap_or(self.address),
            is_pinned: change.is_pinned.unwrap_or(self.is_pinned),
            ..self
        }
    }

    /// Refuses a caller who may not change the view.
    ///
    /// # Errors
    /// [`NotYourView`], unless the caller saved it or has the admin scope.
    pub fn require_owner(&self, actor: &Actor) -> Result<(), NotYourView> {
        if actor.user == self.created_by || actor.scopes.contains(Scope::Admin) {
            Ok(())
        } else {
            Err(NotYourView)
        }
    }

    /// Returns whether the name or the address may concern a table. An address holds tables, columns and SQL, so any
    /// word that is or begins or ends with the table's name counts: a view too many is hidden, never one too few.
    #[must_use]
    pub fn mentions(&self, table: &str) -> bool {
        let is_part = |word: &str| {
            let rest = word
                .strip_prefix(table)
                .or_else(|| word.strip_suffix(table));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_') || rest.ends_with('_'))
        };
        [decoded(&self.address), self.name.clone()]
            .iter()
            .any(|text| {
                let text = text.to_lowercase();
                let mut words =
                    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
                words.any(is_part)
            })
    }
}

/// A text without percent-encoding; what cannot be decoded becomes a replacement character.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let value = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.unwrap_or(*first));
        rest = match value {
            Some(_) => after.get(2..).unwrap_or_default(),
            None => after,
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Error: the address of a view leads elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a view's address is one of the console: it begins with #/ and has no control characters")]
pub struct InvalidViewAddress;

impl Refuse for InvalidViewAddress {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidValue
    }
}

/// Checks the address of a view, which the console makes a link.
///
/// # Errors
/// [`InvalidViewAddress`].
pub fn check_view_address(address: &str) -> Result<(), InvalidViewAddress> {
    if !address.starts_with("#/") || address.contains(char::is_control) {
        Err(InvalidViewAddress)
    } else {
        Ok(())
    }
}

/// Error: somebody else saved the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("only the user who saved a view, or an administrator, changes and deletes it")]
pub struct NotYourView;

impl Refuse for NotYourView {
    fn code(&self) -> ErrorCode {
        ErrorCode::NotYourView
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Forbidden
    }
}

/// Error: the organization has [`MAX_SAVED_VIEWS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the organization has {MAX_SAVED_VIEWS} saved views; delete those that nobody needs")]
pub struct TooManySavedViews;

impl Refuse for TooManySavedViews {
    fn code(&self) -> ErrorCode {
        ErrorCode::TooManySavedViews
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::{
        ids::ApiKeyId,
        people::{rights::Rights, scope::Scopes},
    };

    fn view(name: &str, address: &str) -> SavedView {
        SavedView {
            id: SavedViewId::new(Uuid::nil()),
            organization: OrganizationId::new(Uuid::nil()),
            name: name.to_owned(),
            address: address.to_owned(),
            is_pinned: false,
            created_by: UserId::new(Uuid::from_u128(1)),
            created_at: OffsetDateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_view_has_an_address_of_the_console() {
        assert_eq!(check_view_address("#/tables/sample?_sort=-name"), Ok(()));
        for address in [
            "",
            "#",
            "javascript:alert(1)",
            "https://a.example/#/",
            "#/a\nb",
        ] {
            let refused = check_view_address(address);
            assert_eq!(refused, Err(InvalidViewAddress), "{address:?}");
        }
    }

    #[test]
    fn a_view_mentions_tables_of_its_page_filters_and_sql() {
        for (address, is_mentioned) in [
            ("#/tables/plate", true),
            ("#/tables/plate%2Fkey", true),
            ("#/tables/sample?plate__name=a", true),
            ("#/tables/sample?_columns=name%2Cplate_id", true),
            ("#/sql?q=select+*+from+%22Plate%22", true),
            ("#/sql?q=select+*+from+%70late", true),
            ("#/tables/well_plate", true),
            ("#/plates/curve?_all=1", false),
            ("#/tables/template", false),
            ("#/tables/a%", false),
        ] {
            assert_eq!(
                view("a", address).mentions("plate"),
                is_mentioned,
                "{address}"
            );
        }
        assert!(view("The plate of March", "#/sql").mentions("plate"));
    }

    #[test]
    fn owners_and_administrators_change_a_view() {
        let actor = |user, scopes: Scopes| Actor {
            organization: OrganizationId::new(Uuid::nil()),
            user: UserId::new(Uuid::from_u128(user)),
            api_key: ApiKeyId::new(Uuid::from_u128(3)),
            scopes,
            rights: Rights::admin(),
            execution: None,
        };
        let write: Scopes = [Scope::Read, Scope::Write].into_iter().collect();
        let saved = view("a", "#/sql");
        assert_eq!(saved.require_owner(&actor(1, write)), Ok(()));
        assert_eq!(saved.require_owner(&actor(2, write)), Err(NotYourView));
        assert_eq!(saved.require_owner(&actor(2, Scopes::all())), Ok(()));
    }

    #[test]
    fn a_change_leaves_the_rest() {
        let change = SavedViewChange {
            is_pinned: Some(true),
            ..SavedViewChange::default()
        };
        let expected = SavedView {
            is_pinned: true,
            ..view("a", "#/sql")
        };
        assert_eq!(view("a", "#/sql").changed(change), expected);
    }
}
