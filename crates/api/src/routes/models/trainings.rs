//! `POST /training-token`, `/training-report` and `/training-images`: calls of running trainings. The token of the training
//! is the permission; no key is asked for.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header::CACHE_CONTROL},
    web::{Data, Payload},
};
use bytes::Bytes;
use labdata_application::{
    Error,
    models::training::{
        begin_training::{IMAGES_PATH, REPORT_PATH, TOKEN_PATH},
        exchange_token::exchange_token,
        locate_images::locate_images,
        receive_report::receive_report,
        running_training::{RunningTraining, running_training},
    },
};
use labdata_domain::ids::ModelVersionId;
use serde_json::json;

use crate::{
    app::App,
    http::{
        ApiResult,
        body::{drain, receive_bytes},
        endpoint::Endpoint,
        scope::presented_key,
    },
};

/// Bodies of this many bytes, or more, are refused.
const REPORT_LIMIT: usize = 4 << 20;

/// Trainings whose call is being read. Each may make one call at a time, which bounds the memory of bodies.
static CALLING: Mutex<BTreeSet<ModelVersionId>> = Mutex::new(BTreeSet::new());

/// The endpoints. They are no part of the API's document: only trainings call them.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::hidden(Method::POST, TOKEN_PATH, token),
        Endpoint::hidden(Method::POST, REPORT_PATH, report),
        Endpoint::hidden(Method::POST, IMAGES_PATH, images),
    ]
}

/// Exchanges the token in `Authorization: Bearer <token>`. The field is `key`, as in the response to a run's nonce.
///
/// # Errors
/// 401 for a token of no running training, or one that was exchanged.
pub async fn token(app: Data<App>, request: HttpRequest) -> ApiResult<HttpResponse> {
    let secrets = exchange_token(&app.services, presented_key(&request)?).await?;
    Ok(HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(json!({ "key": secrets })))
}

/// Stores progress, result or error of a training.
///
/// # Errors
/// 401 for a token of no running training; 413 and 422 for a body that is no report.
pub async fn report(
    app: Data<App>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let call = Call::receive(&app, &request, payload).await?;
    receive_report(&app.services, &call.training, &call.body).await?;
    Ok(HttpResponse::Ok().json(json!({})))
}

/// Returns URLs of images.
///
/// # Errors
/// 401 for a token of no running training; 413 and 422 for a body that is no list of ids.
pub async fn images(
    app: Data<App>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let call = Call::receive(&app, &request, payload).await?;
    let images = locate_images(&app.services, &call.training, &call.body).await?;
    Ok(HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(json!({ "images": images })))
}

/// A call of a training, with its body.
struct Call {
    training: RunningTraining,
    body: Bytes,
    _turn: Turn,
}

impl Call {
    /// Recognizes the training before the body is read.
    async fn receive(app: &App, request: &HttpRequest, payload: Payload) -> ApiResult<Self> {
        let mut payload = payload.into_inner();
        let admitted = async {
            let training = running_training(&app.services, presented_key(request)?).await?;
            let turn = Turn::take(training.version)?;
            Ok::<_, Error>((training, turn))
        };
        let (training, turn) = match admitted.await {
            Ok(admitted) => admitted,
            Err(error) => {
                // A client that is still sending would see a reset connection in place of the refusal.
                drain(&mut payload).await;
                return Err(error.into());
            }
        };
        let body = receive_bytes(request, &mut payload, REPORT_LIMIT).await?;
        Ok(Self {
            training,
            body,
            _turn: turn,
        })
    }
}

/// Turn of a training to call.
struct Turn(ModelVersionId);

impl Turn {
    fn take(version: ModelVersionId) -> Result<Self, Error> {
        if calling().insert(version) {
            Ok(Self(version))
        } else {
            Err(Error::busy())
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        calling().remove(&self.0);
    }
}

fn calling() -> MutexGuard<'static, BTreeSet<ModelVersionId>> {
    CALLING.lock().unwrap_or_else(PoisonError::into_inner)
}
