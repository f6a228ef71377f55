//! Secrets of webhooks, and signatures by Standard Webhooks 1.0.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use time::{Duration, OffsetDateTime};

use crate::ids::{DeliveryId, WebhookId};

/// Time for which a rotated secret signs besides the new one.
pub const OLD_SECRET_TIME: Duration = Duration::hours(24);

/// Maximum number of versions that sign at a time; of more rotations, the oldest end earlier.
const MAX_SIGNING: u32 = 50;

/// Version of a webhook's secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretVersion {
    /// Its number, starting at 1.
    pub number: u32,
    /// Time until which the versions before sign too.
    pub previous_until: Option<OffsetDateTime>,
    /// Number of the oldest version that signs until then.
    pub oldest: u32,
}

impl SecretVersion {
    /// The first version.
    pub const FIRST: Self = Self {
        number: 1,
        previous_until: None,
        oldest: 1,
    };

    /// The version after a rotation at that time.
    #[must_use]
    pub fn rotated(self, now: OffsetDateTime) -> Self {
        let number = self.number.saturating_add(1);
        // A rotation within a day must not stop the secret that the receiver still has.
        let oldest = self.signing(now).min().unwrap_or(self.number);
        Self {
            number,
            previous_until: Some(now + OLD_SECRET_TIME),
            oldest: oldest.max(number.saturating_sub(MAX_SIGNING - 1)),
        }
    }

    /// Numbers of the versions that sign at that time, the newest first.
    pub fn signing(self, now: OffsetDateTime) -> impl Iterator<Item = u32> {
        let is_shared = self.previous_until.is_some_and(|until| now < until);
        let oldest = if is_shared { self.oldest } else { self.number };
        (oldest..=self.number).rev()
    }
}

/// Secret of a webhook. It is derived, so that no database and no dump contains it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret([u8; 32]);

impl WebhookSecret {
    /// Derives a version of a webhook's secret from the platform's.
    #[must_use]
    pub fn derive(platform: &[u8; 32], webhook: WebhookId, version: u32) -> Self {
        let mac = mac(platform)
            .chain_update(webhook.as_uuid().as_bytes())
            .chain_update(version.to_be_bytes());
        Self(mac.finalize().into_bytes().into())
    }

    /// The text that its receiver is given, once.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("whsec_{}", STANDARD.encode(self.0))
    }

    /// Signs a delivery: `v1,` and the signature.
    #[must_use]
    pub fn sign(&self, id: DeliveryId, timestamp: i64, body: &str) -> String {
        let mac = mac(&self.0)
            .chain_update(format!("{id}.{timestamp}."))
            .chain_update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// The header `webhook-signature`: a signature by each version that signs at that time.
#[must_use]
pub fn signatures(
    platform: &[u8; 32],
    webhook: WebhookId,
    version: SecretVersion,
    id: DeliveryId,
    now: OffsetDateTime,
    body: &str,
) -> String {
    let sign = |number| {
        WebhookSecret::derive(platform, webhook, number).sign(id, now.unix_timestamp(), body)
    };
    version.signing(now).map(sign).collect::<Vec<_>>().join(" ")
}

/// Starts an HMAC-SHA256.
fn mac(secret: &[u8; 32]) -> Hmac<Sha256> {
    // HMAC pads a shorter key with zeros to a block of its hash.
    let mut block = [0; 64];
    let (start, _) = block.split_at_mut(32);
    start.copy_from_slice(secret);
    Hmac::<Sha256>::new(&block.into())
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use uuid::Uuid;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-11-26 08:00 UTC);

    fn webhook(number: u128) -> WebhookId {
        WebhookId::new(Uuid::from_u128(number))
    }

    #[test]
    fn each_webhook_and_version_has_a_secret_of_its_own() {
        let derive =
            |platform, id, version| WebhookSecret::derive(&[platform; 32], webhook(id), version);
        assert_eq!(derive(1, 1, 1), derive(1, 1, 1));
        for other in [derive(2, 1, 1), derive(1, 2, 1), derive(1, 1, 2)] {
            assert_ne!(derive(1, 1, 1), other);
        }
        let revealed = derive(1, 1, 1).reveal();
        let key = STANDARD.decode(revealed.strip_prefix("whsec_").unwrap());
        assert_eq!(key.map(|key| key.len()), Ok(32));
        assert!(!format!("{:?}", derive(1, 1, 1)).contains(&revealed));
    }

    #[test]
    fn every_secret_signs_for_a_day_after_its_rotation() {
        let hours = |number| NOW + Duration::hours(number);
        let signing = |version: SecretVersion, at| version.signing(at).collect::<Vec<_>>();
        let twice = SecretVersion::FIRST.rotated(NOW).rotated(hours(1));
        assert_eq!(signing(twice, hours(1)), [3, 2, 1]);
        assert_eq!(signing(twice, hours(25)), [3]);
        let later = twice.rotated(hours(30));
        assert_eq!(signing(later, hours(30)), [4, 3]);
        let mut often = SecretVersion::FIRST;
        for _ in 0..100 {
            often = often.rotated(NOW);
        }
        assert_eq!(signing(often, NOW).len(), 50);
    }

    /// The example of the specification's reference libraries.
    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let text = "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}";
        let mut block = [0; 64];
        block[..key.len()].copy_from_slice(&key);
        let signature = Hmac::<Sha256>::new(&block.into())
            .chain_update(text)
            .finalize();
        assert_eq!(
            STANDARD.encode(signature.into_bytes()),
            "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn the_old_secret_signs_for_a_day_after_a_rotation() {
        let rotated = SecretVersion::FIRST.rotated(NOW);
        let signing = |at| rotated.signing(at).collect::<Vec<_>>();
        assert_eq!(SecretVersion::FIRST.signing(NOW).collect::<Vec<_>>(), [1]);
        assert_eq!(signing(NOW), [2, 1]);
        assert_eq!(
            signing(NOW + Duration::hours(24) - Duration::SECOND),
            [2, 1]
        );
        assert_eq!(signing(NOW + Duration::hours(24)), [2]);
        let id = DeliveryId::new(Uuid::from_u128(7));
        let header = signatures(&[3; 32], webhook(1), rotated, id, NOW, "{}");
        let both: Vec<String> = [2, 1]
            .map(|number| {
                let secret = WebhookSecret::derive(&[3; 32], webhook(1), number);
                secret.sign(id, NOW.unix_timestamp(), "{}")
            })
            .into();
        assert_eq!(header, both.join(" "));
    }
}
