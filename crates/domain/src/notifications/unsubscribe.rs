//! Tokens for unsubscribing from e-mails.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

use crate::ids::{OrganizationId, UserId};

/// Makes a token that permits turning off one user's e-mails. It never expires, because e-mails may
/// be read late.
#[must_use]
pub fn unsubscribe_token(secret: &[u8; 32], organization: OrganizationId, user: UserId) -> String {
    let mut token = Vec::with_capacity(64);
    token.extend_from_slice(organization.as_uuid().as_bytes());
    token.extend_from_slice(user.as_uuid().as_bytes());
    let mac = mac(secret, &token).finalize().into_bytes();
    token.extend_from_slice(&mac);
    URL_SAFE_NO_PAD.encode(token)
}

/// Returns the user of a token; `None` if it was not made with the secret.
#[must_use]
pub fn read_unsubscribe_token(secret: &[u8; 32], token: &str) -> Option<(OrganizationId, UserId)> {
    let token: [u8; 64] = URL_SAFE_NO_PAD.decode(token).ok()?.try_into().ok()?;
    let (ids, given) = token.split_at(32);
    // Compares in constant time, which `==` does not.
    mac(secret, ids).verify_slice(given).ok()?;
    let (organization, user) = ids.split_at(16);
    Some((
        OrganizationId::new(Uuid::from_slice(organization).ok()?),
        UserId::new(Uuid::from_slice(user).ok()?),
    ))
}

/// Starts the HMAC-SHA256 of the ids.
fn mac(secret: &[u8; 32], ids: &[u8]) -> Hmac<Sha256> {
    // HMAC pads a shorter key with zeros to a block of its hash.
    let mut block = [0; 64];
    let (start, _) = block.split_at_mut(32);
    start.copy_from_slice(secret);
    Hmac::<Sha256>::new(&block.into()).chain_update(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 32] = [7; 32];

    #[test]
    fn a_token_names_its_user_and_no_other() {
        let (organization, user) = (
            OrganizationId::new(Uuid::from_u128(1)),
            UserId::new(Uuid::from_u128(2)),
        );
        let token = unsubscribe_token(&SECRET, organization, user);
        assert_eq!(
            read_unsubscribe_token(&SECRET, &token),
            Some((organization, user))
        );
        assert_eq!(read_unsubscribe_token(&[8; 32], &token), None);
        let mut forged = URL_SAFE_NO_PAD.decode(&token).unwrap();
        for place in [15, 31, 63] {
            forged[place] ^= 1;
            assert_eq!(
                read_unsubscribe_token(&SECRET, &URL_SAFE_NO_PAD.encode(&forged)),
                None
            );
            forged[place] ^= 1;
        }
        for garbage in ["", "x", &token[1..], &format!("{token}AAAA")] {
            assert_eq!(read_unsubscribe_token(&SECRET, garbage), None, "{garbage}");
        }
    }
}
