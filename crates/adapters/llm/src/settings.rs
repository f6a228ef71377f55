//! Providers and their settings.

use std::time::Duration;

use ::http::HeaderValue;
use labdata_redacted::{Secret, redacted_url};
use url::Url;

/// Provider of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// `OpenAI`, or a server that speaks its chat completions.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Google's Gemini, by its chat completions.
    Gemini,
    /// Ollama, by its chat completions.
    Ollama,
}

impl Provider {
    /// All providers with their names in the settings.
    pub const ALL: [(&'static str, Self); 4] = [
        ("openai", Self::OpenAi),
        ("anthropic", Self::Anthropic),
        ("gemini", Self::Gemini),
        ("ollama", Self::Ollama),
    ];

    /// Returns the provider of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(own, _)| *own == name);
        found.map(|(_, provider)| provider)
    }

    /// The base URL of the provider's own service.
    const fn base_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/openai",
            Self::Ollama => "http://127.0.0.1:11434/v1",
        }
    }

    /// True if the provider's own service responds no request without a key.
    const fn needs_key(self) -> bool {
        match self {
            Self::OpenAi | Self::Anthropic | Self::Gemini => true,
            Self::Ollama => false,
        }
    }
}

/// Settings of the access to models.
#[derive(Clone, Debug)]
pub struct LlmSettings {
    /// The provider (`LABDATA_LLM_PROVIDER`).
    pub provider: Option<Provider>,
    /// Base URL of another server than the provider's own (`LABDATA_LLM_BASE_URL`).
    pub base_url: Option<String>,
    /// Key (`LABDATA_LLM_API_KEY`).
    pub api_key: Option<Secret>,
    /// Longest time without a byte of the provider (`LABDATA_LLM_TIMEOUT_SECONDS`).
    pub timeout: Duration,
}

/// Why no model can be reached with these settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLlm {
    /// The base URL is none.
    #[error("LABDATA_LLM_BASE_URL takes the form https://host/v1, not {0}")]
    BaseUrl(String),
    /// The key has characters that no header takes.
    #[error("the key of the model's provider has characters that no key has")]
    Key,
    /// The machine trusts no certificate authority.
    #[error("this machine has no certificates of authorities; install its package ca-certificates")]
    NoAuthorities,
    /// The TLS library refuses the configuration.
    #[error("{0}")]
    Tls(String),
}

impl LlmSettings {
    /// Checks a key.
    ///
    /// # Errors
    /// [`InvalidLlm::Key`].
    pub fn check_key(key: &str) -> Result<(), InvalidLlm> {
        match HeaderValue::from_str(key) {
            Ok(_) => Ok(()),
            Err(_) => Err(InvalidLlm::Key),
        }
    }

    /// Returns the provider, or the name of the first setting that is missing.
    pub(crate) fn complete(&self) -> Result<Provider, &'static str> {
        let provider = self.provider.ok_or("LABDATA_LLM_PROVIDER")?;
        // A server other than the provider's own may need no key.
        if self.api_key.is_none() && self.base_url.is_none() && provider.needs_key() {
            return Err("LABDATA_LLM_API_KEY");
        }
        Ok(provider)
    }

    /// Returns the URL of an operation below the base URL.
    pub(crate) fn endpoint(&self, provider: Provider) -> Result<Url, InvalidLlm> {
        let base = self.base_url.as_deref().unwrap_or(provider.base_url());
        let invalid = || InvalidLlm::BaseUrl(redacted_url(base));
        let mut url = Url::parse(base).map_err(|_| invalid())?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(invalid());
        }
        let path = url.path().trim_end_matches('/').to_owned();
        let operation = match provider {
            // Anthropic's own tools take a base URL without the version.
            Provider::Anthropic if path.is_empty() => "/v1/messages",
            Provider::Anthropic => "/messages",
            Provider::OpenAi | Provider::Gemini | Provider::Ollama => "/chat/completions",
        };
        url.set_path(&format!("{path}{operation}"));
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(provider: Option<Provider>, base_url: Option<&str>, key: bool) -> LlmSettings {
        LlmSettings {
            provider,
            base_url: base_url.map(str::to_owned),
            api_key: key.then(|| Secret::new("sk".to_owned())),
            timeout: Duration::from_mins(1),
        }
    }

    #[test]
    fn the_missing_setting_is_named() {
        let complete = |provider, base_url, key| settings(provider, base_url, key).complete();
        assert_eq!(complete(None, None, true), Err("LABDATA_LLM_PROVIDER"));
        let openai = Some(Provider::OpenAi);
        assert_eq!(complete(openai, None, false), Err("LABDATA_LLM_API_KEY"));
        assert_eq!(complete(openai, None, true), Ok(Provider::OpenAi));
        assert_eq!(
            complete(openai, Some("http://host/v1"), false),
            Ok(Provider::OpenAi)
        );
        assert_eq!(
            complete(Some(Provider::Ollama), None, false),
            Ok(Provider::Ollama)
        );
    }

    #[test]
    fn an_operation_is_below_the_base_url() {
        for (provider, base, url) in [
            (
                Provider::OpenAi,
                None,
                "https://api.openai.com/v1/chat/completions",
            ),
            (
                Provider::OpenAi,
                Some("http://host:1/v1/"),
                "http://host:1/v1/chat/completions",
            ),
            (
                Provider::Anthropic,
                None,
                "https://api.anthropic.com/v1/messages",
            ),
            (
                Provider::Anthropic,
                Some("http://host:1"),
                "http://host:1/v1/messages",
            ),
            (
                Provider::Anthropic,
                Some("http://host:1/v1"),
                "http://host:1/v1/messages",
            ),
        ] {
            let endpoint = settings(None, base, false).endpoint(provider).unwrap();
            assert_eq!(endpoint.as_str(), url);
        }
        for base in ["host", "ftp://host", "http://"] {
            let endpoint = settings(None, Some(base), false).endpoint(Provider::OpenAi);
            assert_eq!(endpoint, Err(InvalidLlm::BaseUrl(base.to_owned())));
        }
    }

    #[test]
    fn providers_have_names() {
        for (name, provider) in Provider::ALL {
            assert_eq!(Provider::from_name(name), Some(provider));
        }
        assert_eq!(Provider::from_name("OpenAI"), None);
    }
}
