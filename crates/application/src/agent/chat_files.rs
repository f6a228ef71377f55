//! Stores the figures of a run as files of its chat.

use bytes::Bytes;
use futures::{StreamExt, stream};
use labdata_domain::{
    agent::{Attachment, ChatMessage, MAX_ATTACHMENT_BYTES},
    people::actor::Actor,
};

use crate::{
    Error, Services,
    files::{ongoing_uploads::OngoingUpload, upload_file::remove, upload_room::reserve},
};

/// Objects that are stored and belong to no chat yet. Without one, a sweeper removes them.
#[derive(Default)]
pub(super) struct StoredFiles {
    files: Vec<Attachment>,
    /// They count the bytes until the chat does.
    uploads: Vec<OngoingUpload>,
}

impl StoredFiles {
    /// Stores the content of all attachments of the messages.
    ///
    /// # Errors
    /// A refusal (507) when there is no room for them, and those of the storage; nothing
    /// is left then.
    pub(super) async fn store(
        services: &Services,
        actor: &Actor,
        messages: &[ChatMessage],
    ) -> Result<Self, Error> {
        let mut stored = Self::default();
        for file in messages.iter().flat_map(ChatMessage::attachments) {
            if let Err(error) = stored.add(services, actor, file).await {
                // Nothing will refer to the files that were stored before the failure.
                stored.discard(services, actor).await;
                return Err(error);
            }
        }
        Ok(stored)
    }

    async fn add(
        &mut self,
        services: &Services,
        actor: &Actor,
        file: &Attachment,
    ) -> Result<(), Error> {
        let Some(content) = &file.content else {
            return Ok(());
        };
        let object = file.object();
        let upload = services.ongoing_uploads.begin(actor.organization, object);
        let upload = upload.ok_or_else(|| Error::Internal("an id was made twice".to_owned()))?;
        reserve(services, &upload, file.size).await?;
        let body = stream::iter([Ok(Bytes::copy_from_slice(content))]).boxed();
        let limit = u64::try_from(MAX_ATTACHMENT_BYTES).unwrap_or(u64::MAX);
        let put = services
            .blobs
            .put_new(actor.organization, object, body, limit);
        put.await
            .map_err(|error| Error::Internal(error.to_string()))?;
        self.files.push(file.clone());
        self.uploads.push(upload);
        Ok(())
    }

    /// Removes the objects, which belong to no chat.
    pub(super) async fn discard(self, services: &Services, actor: &Actor) {
        for file in self.files {
            remove(services, actor, file.object()).await;
        }
    }
}
