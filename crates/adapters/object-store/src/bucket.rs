//! An opened bucket of a cloud.

use std::{sync::Arc, time::Duration};

use labdata_domain::{files::ObjectKey, ids::OrganizationId};
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt, PutMode, PutPayload, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey, S3CopyIfNotExists},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    gcp::GoogleCloudStorageBuilder,
    path::{Path, PathPart},
    signer::{Signer, Url},
};

use crate::{
    Cloud, Location, OpenError, http_client::CloudClient, object_path::object_path,
    service_sas::ServiceSas,
};

/// Name of the directory, below the prefix, of objects that are not complete.
pub(crate) const INCOMING: &str = "incoming";

/// A bucket of a cloud.
#[derive(Clone)]
pub struct Bucket {
    pub(crate) cloud: Cloud,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) urls: Arc<dyn Signer>,
    /// Signer of Azure's URLs that only create; `None` without the account's key.
    pub(crate) sas: Option<ServiceSas>,
    pub(crate) client: CloudClient,
    pub(crate) prefix: Path,
}

/// An environment variable and its value.
pub type Variable = (String, String);

impl Bucket {
    /// Opens a bucket with the cloud's usual environment variables, and checks that it accepts
    /// objects.
    pub(crate) async fn open(
        location: &Location,
        (cloud, name, prefix): (Cloud, &str, &str),
        environment: &[Variable],
    ) -> Result<Self, OpenError> {
        let fails = |error: &dyn std::fmt::Display| OpenError::new(location, error);
        let client = CloudClient::new().map_err(|error| fails(&error))?;
        let bucket = match cloud {
            Cloud::S3 => s3(name, environment, client),
            Cloud::Gcs => gcs(name, environment, client),
            Cloud::Azure => azure(name, environment, client),
        };
        let mut bucket = bucket.map_err(|error| fails(&error))?;
        bucket.prefix = Path::from(prefix);
        bucket.try_out().await.map_err(|error| fails(&error))?;
        Ok(bucket)
    }

    /// Path of an object.
    pub(crate) fn object_path(&self, organization: OrganizationId, object: ObjectKey) -> Path {
        self.below(object_path(organization, object).parts())
    }

    /// Directory of all objects that are not complete.
    pub(crate) fn incoming(&self) -> Path {
        self.below([PathPart::from(INCOMING)])
    }

    fn below<'p>(&'p self, parts: impl IntoIterator<Item = PathPart<'p>>) -> Path {
        self.prefix.parts().chain(parts).collect()
    }

    /// Creates an object and removes it.
    async fn try_out(&self) -> object_store::Result<()> {
        let path = self.incoming().join(format!("probe.{}", random_name()));
        let bytes = PutPayload::from_static(b"labdata");
        self.store
            // With the condition that all uploads need: not every server with S3's API knows it.
            .put_opts(&path, bytes, PutMode::Create.into())
            .await?;
        // Shows as well whether the account may delete, which is otherwise first needed by a sweep.
        self.store.delete(&path).await
    }
}

/// A random, unique name.
pub(crate) fn random_name() -> String {
    let mut bytes = [0; 16];
    // Without random bytes names may collide; a collision is refused.
    let _ = getrandom::fill(&mut bytes);
    format!("{:032x}", u128::from_be_bytes(bytes))
}

/// The environment variables whose names begin with `prefix`, as options.
fn options<Key: std::str::FromStr>(environment: &[Variable], prefix: &str) -> Vec<(Key, String)> {
    let options = environment.iter().filter_map(|(name, value)| {
        let key = name.starts_with(prefix).then(|| name.to_ascii_lowercase());
        // Unknown variables are skipped: tools of the cloud define many with the same prefix.
        Some((key?.parse().ok()?, value.clone()))
    });
    options.collect()
}

/// Retries for 20 s at most, so that a request is answered in time.
fn retry() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(1),
            ..BackoffConfig::default()
        },
        max_retries: 3,
        retry_timeout: Duration::from_secs(20),
    }
}

/// Allows HTTP without TLS if the operator's endpoint has that scheme.
///
/// # Errors
/// When the endpoint is not an HTTP or HTTPS URL.
fn client_options(endpoint: Option<String>) -> object_store::Result<ClientOptions> {
    let Some(endpoint) = endpoint else {
        return Ok(ClientOptions::new());
    };
    let url = Url::parse(&endpoint).ok();
    let scheme = url.as_ref().map(Url::scheme);
    match scheme {
        Some("http" | "https") => Ok(ClientOptions::new().with_allow_http(scheme == Some("http"))),
        _ => Err(object_store::Error::Generic {
            store: "storage",
            source: format!("the endpoint {endpoint:?} is no http or https URL").into(),
        }),
    }
}

fn s3(name: &str, environment: &[Variable], client: CloudClient) -> object_store::Result<Bucket> {
    let mut builder = AmazonS3Builder::new();
    for (key, value) in options::<AmazonS3ConfigKey>(environment, "AWS_") {
        builder = builder.with_config(key, value);
    }
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    let store = builder
        .with_bucket_name(name)
        .with_client_options(client_options(endpoint)?)
        .with_retry(retry())
        // Not every server knows a condition on CopyObject; completing a multipart upload has one.
        .with_copy_if_not_exists(S3CopyIfNotExists::Multipart)
        .with_http_connector(client.clone())
        .build()?;
    Ok(bucket(Cloud::S3, store, None, client))
}

fn gcs(name: &str, environment: &[Variable], client: CloudClient) -> object_store::Result<Bucket> {
    let mut builder = GoogleCloudStorageBuilder::new();
    for (key, value) in options(environment, "GOOGLE_") {
        builder = builder.with_config(key, value);
    }
    let store = builder
        .with_bucket_name(name)
        // A server without TLS can only be named in a key file, for tests.
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_retry(retry())
        .with_http_connector(client.clone())
        .build()?;
    Ok(bucket(Cloud::Gcs, store, None, client))
}

fn azure(
    name: &str,
    environment: &[Variable],
    client: CloudClient,
) -> object_store::Result<Bucket> {
    let mut builder = MicrosoftAzureBuilder::new();
    for (key, value) in options::<AzureConfigKey>(environment, "AZURE_") {
        builder = builder.with_config(key, value);
    }
    let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
    let account = builder.get_config_value(&AzureConfigKey::AccountName);
    let key = builder.get_config_value(&AzureConfigKey::AccessKey);
    let sas = account
        .zip(key)
        .and_then(|(account, key)| ServiceSas::new(&account, &key));
    let store = builder
        .with_container_name(name)
        .with_client_options(client_options(endpoint)?)
        .with_retry(retry())
        .with_http_connector(client.clone())
        .build()?;
    Ok(bucket(Cloud::Azure, store, sas, client))
}

fn bucket<S: ObjectStore + Signer>(
    cloud: Cloud,
    store: S,
    sas: Option<ServiceSas>,
    client: CloudClient,
) -> Bucket {
    let store = Arc::new(store);
    Bucket {
        cloud,
        store: store.clone(),
        urls: store,
        sas,
        client,
        prefix: Path::default(),
    }
}
