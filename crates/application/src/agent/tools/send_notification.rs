//! The tool `send_notification`.

use async_trait::async_trait;
use labdata_domain::notifications::{Draft, MAX_ACTION_URL, MAX_BODY, MAX_TITLE};
use labdata_request_body::{
    Reader as _,
    fields::{or, required},
    readers::text,
    shape,
};
use serde_json::json;

use super::{
    ToolContext, TypedTool,
    effects::{NONE, with_effects},
};
use crate::{Error, notifications::send_notification::send_notification};

shape! {
    /// Arguments of `send_notification`.
    pub(super) struct SendNotificationInput {
        /// Its title, one line.
        title: String = required(text(1..=MAX_TITLE)),
        /// Its text.
        body: String = or("", text(..=MAX_BODY)),
        /// Path of the platform that it opens, such as /jobs/ID.
        action_url: String = or("", text(..).with("maxLength", MAX_ACTION_URL)),
    }
}

/// Sends notifications to the caller.
pub(super) struct SendNotification;

#[async_trait]
impl TypedTool for SendNotification {
    type Input = SendNotificationInput;
    const NAME: &'static str = "send_notification";
    const DESCRIPTION: &'static str = "Sends a notification to the user of this conversation, and to no \
        one else.";
    const NEEDS_WRITE: bool = true;

    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: SendNotificationInput,
    ) -> Result<String, Error> {
        let draft = Draft {
            title: input.title,
            // Never a repeat: the model may mean to send the same text twice.
            dedupe_key: context.ports.ids.next_id().to_string(),
            body: input.body,
            action_url: input.action_url,
            data: None,
        };
        let sent = send_notification(context.ports, context.actor, draft).await?;
        Ok(with_effects(json!({ "status": sent.status() }), NONE))
    }
}
