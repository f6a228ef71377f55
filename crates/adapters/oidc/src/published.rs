//! The provider's metadata and keys, cached.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use labdata_ports::people::oidc::ProviderError;
use tokio::sync::Mutex;

use crate::{
    keys::{Jwk, Jwks},
    metadata::Metadata,
    requests::{Client, invalid},
};

/// Time for which metadata and keys are used.
pub(crate) const CACHED_FOR: Duration = Duration::from_hours(1);
/// Shortest time between two searches for a key that is not known.
pub(crate) const KEYS_EVERY: Duration = Duration::from_mins(1);
/// Time for which a provider that does not respond is not asked again, so that requests do not wait in a row.
const FAILED_FOR: Duration = Duration::from_secs(5);

/// Metadata and keys of a provider.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) metadata: Arc<Metadata>,
    pub(crate) keys: Arc<Vec<Jwk>>,
}

#[derive(Default)]
struct Cached {
    published: Option<(Instant, Published)>,
    failed: Option<(Instant, ProviderError)>,
}

/// The last metadata and keys of a provider. One caller at a time fetches them.
#[derive(Default)]
pub(crate) struct Cache(Mutex<Cached>);

impl Cache {
    /// Metadata and keys, fetched at most that long ago.
    pub(crate) async fn get(
        &self,
        client: &Client,
        issuer: &str,
        max_age: Duration,
    ) -> Result<Published, ProviderError> {
        // Held while the provider is asked: those who wait find what the first one fetched.
        let mut cached = self.0.lock().await;
        if let Some((at, published)) = &cached.published
            && at.elapsed() < max_age
        {
            return Ok(published.clone());
        }
        if let Some((at, error)) = &cached.failed
            && at.elapsed() < FAILED_FOR
        {
            return Err(error.clone());
        }
        match fetch(client, issuer).await {
            Ok(published) => {
                cached.published = Some((Instant::now(), published.clone()));
                cached.failed = None;
                Ok(published)
            }
            Err(error) => {
                cached.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

async fn fetch(client: &Client, issuer: &str) -> Result<Published, ProviderError> {
    let url = format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    );
    let metadata: Metadata = client.get(&url, None).await?;
    if !metadata.is_of(issuer) {
        return Err(invalid(
            "the discovery document is another issuer's, or has unsafe URLs",
        ));
    }
    let keys: Jwks = client.get(&metadata.jwks_uri, None).await?;
    Ok(Published {
        metadata: Arc::new(metadata),
        keys: Arc::new(keys.keys()),
    })
}
