//! The URL that a client requested.

use actix_web::{HttpRequest, web::Data};

use crate::app::App;

/// The URL of the request's path as its client reaches it. Forwarded headers are ignored: any client
/// can send them.
#[must_use]
pub fn url_of_path(request: &HttpRequest) -> String {
    let path = request.path();
    match request.app_data::<Data<App>>() {
        Some(app) => format!("{}{path}", app.public_url.base_for(request.headers())),
        None => path.to_owned(),
    }
}
