//! Errors of requests.

use std::{error::Error, io, time::Duration};

use hyper_util::client::legacy::Error as ClientError;
use rustls::Error as TlsError;

use crate::resolver::NotPermitted;

/// Error of a request. Its text has one line, without URL and headers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// There was no response, or no next chunk of it, in time.
    #[error("no response within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The server's certificate is not trusted, or is not valid for the address.
    #[error("the server's certificate is not trusted: {0}")]
    Untrusted(String),
    /// The server's address is not permitted; nothing was sent.
    #[error("its address is not permitted")]
    Forbidden,
    /// The server cannot be reached; nothing was sent.
    #[error("{0}")]
    Unreachable(String),
    /// The connection broke before the response began.
    #[error("{0}")]
    Broken(String),
    /// The connection broke within the response.
    #[error("{0}")]
    Interrupted(String),
    /// The response is longer than this number of bytes.
    #[error("the response is longer than {0} bytes")]
    TooLong(usize),
}

impl HttpError {
    pub(crate) fn from_client(error: &ClientError) -> Self {
        let mut next: Option<&(dyn Error + 'static)> = Some(error);
        // The certificate's problem is several layers down: client, connector, I/O, TLS.
        while let Some(error) = next {
            if is_not_permitted(error) {
                return Self::Forbidden;
            }
            if let Some(problem) = certificate_problem(error) {
                return Self::Untrusted(problem);
            }
            next = error.source();
        }
        let causes = causes(error);
        // Callers may repeat what was never sent.
        if error.is_connect() {
            Self::Unreachable(causes)
        } else {
            Self::Broken(causes)
        }
    }
}

/// Returns the causes of an error in one line.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut causes = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        causes = format!("{causes}: {error}");
        next = error.source();
    }
    causes
}

/// Returns whether the error is that of the resolver for names without a permitted address.
fn is_not_permitted(error: &(dyn Error + 'static)) -> bool {
    let inner = error.downcast_ref::<io::Error>();
    inner
        .and_then(io::Error::get_ref)
        .is_some_and(<dyn std::error::Error + Send + Sync>::is::<NotPermitted>)
}

/// Returns the problem with the server's certificate, if the error is one.
fn certificate_problem(error: &(dyn Error + 'static)) -> Option<String> {
    // The inner error of an I/O error is not among its sources. The connector nests them.
    let mut inner = error;
    while let Some(error) = inner.downcast_ref::<io::Error>() {
        inner = error.get_ref()?;
    }
    match inner.downcast_ref::<TlsError>()? {
        TlsError::InvalidCertificate(problem) => Some(problem.to_string()),
        _ => None,
    }
}
