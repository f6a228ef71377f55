//! Passwords of SQL logins.

use std::fmt;

/// Number of random bytes of a password.
const BYTES: usize = 32;

/// Plain text of a password, given out once. Never stored, never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct SqlPassword(String);

impl fmt::Debug for SqlPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SqlPassword(…)")
    }
}

impl SqlPassword {
    /// Makes a password of random bytes, in letters that need no escape in URLs, files and shells.
    #[must_use]
    pub fn from_random(bytes: [u8; BYTES]) -> Self {
        Self(base16ct::lower::encode_string(&bytes))
    }

    /// Returns the password, to be handed to its holder.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_printed() {
        let password = SqlPassword::from_random([7; BYTES]);
        assert_eq!(password.reveal(), "07".repeat(BYTES));
        assert!(!format!("{password:?}").contains("07"));
    }
}
