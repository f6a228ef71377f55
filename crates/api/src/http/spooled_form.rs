//! Multipart forms with a large file, which is written to the disk while it arrives.

use std::{cell::RefCell, fs::File, io, io::Seek, rc::Rc};

use actix_multipart::{Field, Multipart};
use actix_web::{HttpMessage as _, HttpRequest, dev::Payload, error::PayloadError, web::Data};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use labdata_application::{Error, Services, files::upload_room::SpoolRoom};
use labdata_domain::{people::actor::Actor, storage::InsufficientStorage};
use labdata_table_formats::read::ReadOptions;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use super::{
    ApiError,
    body::{announced, body_timeout, next_chunk, too_large},
    multipart::{MOST_PARTS, file_name, hash_texts, several_files},
};
use crate::app::App;

/// Maximum size of a form without its file, in bytes.
const FIELDS_LIMIT: usize = 1 << 20;

/// The parts of a form, of which one is a file.
#[derive(Debug)]
pub struct SpooledForm {
    /// Names and texts of the other parts, in their order.
    fields: Vec<(String, String)>,
    /// The part with the file, if there is one.
    pub file: Option<SpooledFile>,
    sha256: [u8; 32],
}

/// A file on the disk, without a name there: it no longer exists once it is closed.
#[derive(Debug)]
pub struct SpooledFile {
    /// The name that it was sent with.
    pub file_name: Option<String>,
    /// The type that it was sent with.
    pub content_type: Option<String>,
    /// Its bytes, from the beginning.
    pub bytes: File,
}

impl SpooledForm {
    /// Receives a form whose part `file` has at most `limit` bytes, which counts in the
    /// returned room. The inner error says what is wrong with the form.
    ///
    /// # Errors
    /// 413 for a larger one; 400 when it breaks off, 408 when it stalls; 503 while the organization sends
    /// many; 507 when the disk or the quota is full.
    pub async fn receive(
        request: &HttpRequest,
        payload: &mut Payload,
        file: &str,
        limit: usize,
    ) -> Result<(Result<Self, String>, SpoolRoom), ApiError> {
        let most = limit.saturating_add(FIELDS_LIMIT);
        // Refused before a byte is written; a chunked body announces no length and is counted while it arrives.
        if announced(request).unwrap_or_default() > most {
            return Err(too_large(most));
        }
        let (services, actor) = sender(request)?;
        let mut room = SpoolRoom::enter(services, &actor).await?;
        // The parser owns its input, but the rest of the body has to be drained after it fails.
        let lent = Lent::default();
        let arriving = lent.lend(std::mem::replace(payload, Payload::None), most);
        let mut multipart = Multipart::new(request.headers(), arriving.fuse().boxed_local());
        let spool = Spool {
            services,
            limit,
            room: &mut room,
        };
        let read = read(&mut multipart, file, spool).await;
        // Returns the payload, which the parser holds until here.
        drop(multipart);
        // The caller reads and throws away what is left of the body.
        *payload = lent.payload.borrow_mut().take().unwrap_or(Payload::None);
        // First the stream's own error: the parser only reports that its input ended early.
        match (lent.trouble.borrow_mut().take(), read) {
            (Some(trouble), _) | (None, Err(Trouble::Api(trouble))) => Err(trouble),
            (None, Err(Trouble::Form(reason))) => Ok((Err(reason), room)),
            (None, Ok(form)) => Ok((Ok(form), room)),
        }
    }

    /// The texts of all parts of that name, without those that are empty.
    pub fn texts<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        let parts = self.fields.iter().filter(move |(field, _)| field == name);
        parts
            .map(|(_, text)| text.trim())
            .filter(|text| !text.is_empty())
    }

    /// The text of the last part of that name; one that is empty or `null` counts as absent.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let last = self.fields.iter().rfind(|(field, _)| field == name);
        let text = last.map(|(_, text)| text.trim());
        text.filter(|text| !text.is_empty() && *text != "null")
    }

    /// The options of the reading of a file, as they were sent: a blank is a sign, and an empty text
    /// means none where an option may have none.
    #[must_use]
    pub fn reading_options(&self) -> Map<String, Value> {
        let mut options = Map::new();
        for (name, text) in &self.fields {
            let is_option = ReadOptions::NAMES.contains(&name.as_str());
            let may_be_empty = matches!(name.as_str(), "quote" | "thousands" | "null_values");
            if !is_option || text.is_empty() && !may_be_empty {
                continue;
            }
            if name == "null_values" {
                let list = options
                    .entry(name.clone())
                    .or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(list) = list {
                    list.extend(listed(text));
                }
            } else {
                options.insert(name.clone(), text.clone().into());
            }
        }
        options
    }

    /// SHA-256 of the parts without the boundaries between them.
    #[must_use]
    pub const fn sha256(&self) -> [u8; 32] {
        self.sha256
    }
}

/// Texts of a field that may repeat. Other fields are JSON, so a list as JSON is one as well: as a text it would be a
/// null value that no cell has, and what it names would be stored as numbers.
fn listed(text: &str) -> Vec<Value> {
    let list: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let texts = list.into_iter().map(|it| match it {
        Value::String(_) => Some(it),
        Value::Number(number) => Some(number.to_string().into()),
        _ => None,
    });
    let texts: Option<Vec<Value>> = texts.collect();
    let texts = texts.filter(|texts| !texts.is_empty());
    texts.unwrap_or_else(|| vec![text.into()])
}

/// Reason why a form is not read.
enum Trouble {
    /// It has another form.
    Form(String),
    Api(ApiError),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Api(match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::refused(InsufficientStorage::DiskFull).into()
            }
            _ => Error::Internal(format!("a file could not be spooled: {error}")).into(),
        })
    }
}

/// The services, and the caller that sends a request.
fn sender(request: &HttpRequest) -> Result<(&Services, Actor), ApiError> {
    let app = request.app_data::<Data<App>>();
    let extensions = request.extensions();
    match (app, extensions.get::<Actor>()) {
        (Some(app), Some(actor)) => Ok((&app.services, actor.clone())),
        _ => Err(Error::Internal("a file without its sender".to_owned()).into()),
    }
}

/// Destination of a file.
struct Spool<'s> {
    services: &'s Services,
    /// Maximum size of the file in bytes.
    limit: usize,
    room: &'s mut SpoolRoom,
}

async fn read(
    multipart: &mut Multipart,
    file: &str,
    mut target: Spool<'_>,
) -> Result<SpooledForm, Trouble> {
    let mut form = SpooledForm {
        fields: Vec::new(),
        file: None,
        sha256: [0; 32],
    };
    let mut hash = Sha256::new();
    let (mut parts, mut room) = (0, FIELDS_LIMIT);
    while let Some(part) = multipart.next().await {
        let mut part = part.map_err(|error| Trouble::Form(error.to_string()))?;
        parts += 1;
        if parts > MOST_PARTS {
            return Err(Trouble::Form(format!(
                "it has more than {MOST_PARTS} parts"
            )));
        }
        let name = part.name().unwrap_or_default().to_owned();
        let sent_name = file_name(&part);
        let content_type = part.content_type().map(ToString::to_string);
        hash_texts(
            &mut hash,
            [Some(&name), sent_name.as_ref(), content_type.as_ref()],
        );
        if name == file {
            if form.file.is_some() {
                return Err(Trouble::Form(several_files(file)));
            }
            let (bytes, sha256) = spool(&mut part, &mut target).await?;
            // The file's hash has a fixed length, so what follows cannot be confused with its bytes.
            hash.update(sha256);
            form.file = Some(SpooledFile {
                file_name: sent_name,
                content_type,
                bytes,
            });
        } else {
            let bytes = text_of(&mut part, room).await?;
            room = room.saturating_sub(bytes.len());
            hash.update(Sha256::digest(&bytes));
            let text = String::from_utf8_lossy(&bytes).into_owned();
            form.fields.push((name, text));
        }
    }
    form.sha256 = hash.finalize().into();
    Ok(form)
}

/// Writes a part to the disk; returns it with its SHA-256.
async fn spool(part: &mut Field, target: &mut Spool<'_>) -> Result<(File, [u8; 32]), Trouble> {
    // An unnamed file: the system deletes it with its last handle, also when the process is killed.
    let file = tokio::task::spawn_blocking(tempfile::tempfile)
        .await
        .map_err(io::Error::other)??;
    let mut file = tokio::fs::File::from_std(file);
    let (mut hash, mut size) = (Sha256::new(), 0_usize);
    while let Some(chunk) = part.next().await {
        let chunk = chunk.map_err(|error| Trouble::Form(error.to_string()))?;
        size = size.saturating_add(chunk.len());
        if size > target.limit {
            return Err(Trouble::Api(ApiError::FilePartTooLarge(target.limit)));
        }
        let room = target.room.grow(target.services, chunk.len()).await;
        room.map_err(|error| Trouble::Api(error.into()))?;
        hash.update(&chunk);
        file.write_all(&chunk).await?;
    }
    // Tokio writes in the background: without this the last error would be lost.
    file.flush().await?;
    let mut file = file.into_std().await;
    file.rewind()?;
    Ok((file, hash.finalize().into()))
}

/// Reads a part of at most that many bytes.
async fn text_of(part: &mut Field, room: usize) -> Result<Bytes, Trouble> {
    match part.bytes(room).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(Trouble::Form(error.to_string())),
        Err(_) => Err(Trouble::Form(format!(
            "its parts besides the file have more than {FIELDS_LIMIT} bytes"
        ))),
    }
}

/// A payload that is lent to the parser, and the reason why it ended early.
#[derive(Default)]
struct Lent {
    payload: Rc<RefCell<Option<Payload>>>,
    trouble: Rc<RefCell<Option<ApiError>>>,
}

/// Gives the payload back when the parser is done with it.
struct Borrowed {
    payload: Payload,
    home: Rc<RefCell<Option<Payload>>>,
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let payload = std::mem::replace(&mut self.payload, Payload::None);
        self.home.replace(Some(payload));
    }
}

impl Lent {
    /// The chunks of a body of at most that many bytes.
    fn lend(
        &self,
        payload: Payload,
        most: usize,
    ) -> impl Stream<Item = Result<Bytes, PayloadError>> + use<> {
        let borrowed = Borrowed {
            payload,
            home: Rc::clone(&self.payload),
        };
        let trouble = Rc::clone(&self.trouble);
        stream::unfold(Some((borrowed, most, body_timeout())), move |state| {
            let trouble = Rc::clone(&trouble);
            async move {
                let (mut borrowed, room, mut timeout) = state?;
                let found = match next_chunk(&mut borrowed.payload, &mut timeout).await {
                    Some(None) => return None,
                    Some(Some(Ok(chunk))) => match room.checked_sub(chunk.len()) {
                        Some(room) => return Some((Ok(chunk), Some((borrowed, room, timeout)))),
                        None => too_large(most),
                    },
                    Some(Some(Err(error))) => {
                        ApiError::BrokenBody(format!("the request body broke off: {error}"))
                    }
                    None => ApiError::SlowBody,
                };
                // The parser passes only its own kind of error on; the real one goes beside it.
                trouble.replace(Some(found));
                Some((Err(PayloadError::Overflow), None))
            }
        })
    }
}
