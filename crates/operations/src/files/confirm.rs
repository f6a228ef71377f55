//! `POST /api/v1/files/{file_id}/confirm-upload`

use labdata_application::{Error, files::confirm_upload::confirm_upload};
use labdata_domain::ids::FileId;
use labdata_request_body::{fields::required, readers::uuid, shape};

use super::FileUploadView;
use crate::{About, Call, Method, NoBody, Operation, Tag, Write};

shape! {
    /// The path of a file.
    #[derive(Clone, Copy, Debug)]
    pub struct ConfirmPath {
        /// The file's id
        file_id: FileId = required(uuid()),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "confirm_upload",
        method: Method::Post,
        path: "/api/v1/files/{file_id}/confirm-upload",
        tag: Tag::Files,
        summary: "Confirms that the bytes were sent to the upload URL",
        description: "The file is listed from then on. One that is confirmed already is returned as it is.",
        returns: "The file",
        refusals: &[
            (
                400,
                "The bytes are not there yet; the execution is closed; another upload of the path came \
                 first; or they are too many or a native executable, and the file was discarded",
            ),
            (
                507,
                "The disk is full; or other files have used up the quota of the organization, and the \
                 file was discarded",
            ),
        ],
    }
    .runs(run)
}

async fn run(call: Call<Write, NoBody, (), ConfirmPath>) -> Result<FileUploadView, Error> {
    let file = confirm_upload(&call.services, &call.actor, call.path.file_id).await?;
    Ok(file.into())
}
