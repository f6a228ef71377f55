//! Admission of persons who sign in with the provider, and their roles.

use super::SignInRefused;
use crate::people::role::Role;

/// Groups of a person, as the provider names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Groups {
    /// All of them.
    Listed(Vec<String>),
    /// The provider sends no claim with groups.
    Missing,
    /// There are more than the provider lists, so it lists none (Entra ID's overage).
    Omitted,
}

/// Mapping of the provider's groups to roles, such as `lab-admins=admin,lab=member,*=viewer`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleMapping {
    roles: Vec<(String, Role)>,
    everyone: Option<Role>,
}

/// Error: a text is no mapping of groups to roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("groups and roles such as lab-admins=admin,lab=member,*=viewer")]
pub struct InvalidRoles;

impl RoleMapping {
    /// Reads a mapping.
    ///
    /// # Errors
    /// [`InvalidRoles`].
    pub fn parse(text: &str) -> Result<Self, InvalidRoles> {
        let mut mapping = Self::default();
        for entry in text.split(',') {
            // The last one: names of groups may contain it.
            let (group, role) = entry.rsplit_once('=').ok_or(InvalidRoles)?;
            let role = Role::from_name(role.trim()).ok_or(InvalidRoles)?;
            match group.trim() {
                "" => return Err(InvalidRoles),
                "*" => mapping.everyone = mapping.everyone.max(Some(role)),
                group => mapping.roles.push((group.to_owned(), role)),
            }
        }
        Ok(mapping)
    }

    /// Returns the highest role of these groups; `None` if none of them has one.
    #[must_use]
    fn role_of(&self, groups: &[String]) -> Option<Role> {
        let mapped = self
            .roles
            .iter()
            .filter(|(group, _)| groups.contains(group));
        mapped.map(|(_, role)| *role).max().max(self.everyone)
    }
}

/// Domains of e-mail addresses whose persons get a user when they first sign in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmailDomains(Vec<String>);

impl EmailDomains {
    /// Reads `false`, or domains separated by commas; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.trim() == "false" {
            return Some(Self::default());
        }
        let domain = |text: &str| {
            let text = text.trim().to_ascii_lowercase();
            let is_domain = text.contains('.')
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
            is_domain.then_some(text)
        };
        text.split(',').map(domain).collect::<Option<_>>().map(Self)
    }

    /// Returns whether the address is of one of them; subdomains are others.
    #[must_use]
    pub fn contain(&self, email: &str) -> bool {
        email.rsplit_once('@').is_some_and(|(_, domain)| {
            self.0
                .iter()
                .any(|known| known.eq_ignore_ascii_case(domain))
        })
    }
}

/// Admission of persons who sign in with the provider, and their roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OidcPolicy {
    /// Roles of groups.
    pub roles: RoleMapping,
    /// Domains of e-mail addresses whose owners get a user at the first sign-in.
    pub creates_users: EmailDomains,
    /// Name of the organization that persons sign in to.
    pub organization: String,
}

impl OidcPolicy {
    /// Returns the highest role of a person's groups. Groups that are not known count as none, so they give no
    /// role but that of everyone.
    ///
    /// # Errors
    /// The reason why there is no role: [`SignInRefused::NoRole`] only if the groups are known.
    pub fn role_of(&self, groups: &Groups) -> Result<Role, SignInRefused> {
        let (listed, refusal): (&[String], _) = match groups {
            Groups::Listed(groups) => (groups, SignInRefused::NoRole),
            Groups::Missing => (&[], SignInRefused::GroupsMissing),
            Groups::Omitted => (&[], SignInRefused::GroupsOmitted),
        };
        self.roles.role_of(listed).ok_or(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(mapping: &str) -> OidcPolicy {
        OidcPolicy {
            roles: RoleMapping::parse(mapping).unwrap(),
            ..OidcPolicy::default()
        }
    }

    fn role(mapping: &str, groups: &[&str]) -> Option<Role> {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        policy(mapping).role_of(&Groups::Listed(groups)).ok()
    }

    #[test]
    fn groups_that_are_not_known_give_the_role_of_everyone_only() {
        for (groups, refusal) in [
            (Groups::Missing, SignInRefused::GroupsMissing),
            (Groups::Omitted, SignInRefused::GroupsOmitted),
            (Groups::Listed(Vec::new()), SignInRefused::NoRole),
        ] {
            assert_eq!(policy("lab=admin").role_of(&groups), Err(refusal));
            assert_eq!(
                policy("lab=admin,*=viewer").role_of(&groups),
                Ok(Role::Viewer)
            );
        }
    }

    #[test]
    fn several_groups_give_the_highest_role() {
        let mapping = "lab-admins=admin, lab=member,guests=viewer";
        assert_eq!(role(mapping, &["guests", "lab"]), Some(Role::Member));
        assert_eq!(role(mapping, &["lab-admins", "guests"]), Some(Role::Admin));
        assert_eq!(role(mapping, &["Lab", "lab "]), None, "letter by letter");
        assert_eq!(role(mapping, &[]), None);
        assert_eq!(role("a=b=viewer", &["a=b"]), Some(Role::Viewer));
    }

    #[test]
    fn a_star_is_for_everyone() {
        let mapping = "*=viewer,lab=member";
        assert_eq!(role(mapping, &[]), Some(Role::Viewer));
        assert_eq!(role(mapping, &["lab"]), Some(Role::Member));
        assert_eq!(role(mapping, &["*"]), Some(Role::Viewer));
    }

    #[test]
    fn other_texts_are_no_mapping() {
        for text in [
            "",
            "lab",
            "lab=owner",
            "=admin",
            "lab=member,,",
            "lab=Admin",
        ] {
            assert_eq!(RoleMapping::parse(text), Err(InvalidRoles), "{text}");
        }
    }

    #[test]
    fn users_are_made_for_domains_only() {
        let domains = EmailDomains::parse("example.org, Lab.example.com").unwrap();
        for email in [
            "ada@example.org",
            "ada@EXAMPLE.org",
            "\"a@b\"@lab.example.com",
        ] {
            assert!(domains.contain(email), "{email}");
        }
        for email in [
            "ada@evil-example.org",
            "ada@sub.example.org",
            "example.org",
            "ada@example.org.evil",
        ] {
            assert!(!domains.contain(email), "{email}");
        }
        assert!(
            !EmailDomains::parse("false")
                .unwrap()
                .contain("ada@example.org")
        );
        for text in ["true", "", "example", "ada@example.org"] {
            assert_eq!(EmailDomains::parse(text), None, "{text}");
        }
    }
}
