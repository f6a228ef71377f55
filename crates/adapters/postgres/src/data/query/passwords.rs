//! Passwords of the roles of queries, derived from the platform's secret.

use labdata_domain::ids::OrganizationId;

use super::{PgQueryRunner, verifier};

/// Iterations of the verifiers of passwords: they are random and cannot be guessed, and each query may log in.
const ITERATIONS: u32 = 1;

impl PgQueryRunner {
    /// The password of an organization's role.
    pub(super) fn password(&self, organization: OrganizationId) -> String {
        base16ct::lower::encode_string(&self.derive(organization.as_uuid().as_bytes()))
    }

    /// The server's hash of the password, so that no log of statements contains the password.
    pub(super) fn verifier(&self, organization: OrganizationId) -> String {
        let of = format!("salt of {}", organization.as_uuid());
        let salt = self.derive(of.as_bytes());
        verifier::scram_sha_256(&self.password(organization), &salt, ITERATIONS)
    }

    /// The password of a role of that name.
    pub(super) fn veil_password(&self, role: &str) -> String {
        base16ct::lower::encode_string(&self.derive(format!("password of {role}").as_bytes()))
    }

    pub(super) fn veil_verifier(&self, role: &str) -> String {
        let salt = self.derive(format!("salt of {role}").as_bytes());
        verifier::scram_sha_256(&self.veil_password(role), &salt, ITERATIONS)
    }
}
