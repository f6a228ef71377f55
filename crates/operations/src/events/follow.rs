//! `GET /api/v1/events`

use labdata_domain::{
    events::{EventReferences, LoggedEvent, LoggedEventKind},
    ids::{ExecutionId, FileId, InstrumentId, ModelId, NotificationId},
};
use labdata_request_body::{Timestamp, names, output};

use crate::{About, EventStream, Method, NoBody, Operation, Read, RequestHeader, Tag};

names! {
    /// Type of an event.
    pub EventType = LoggedEventKind::TYPES;
}

output! {
    /// An event: the data of one server-sent event.
    #[derive(Clone, Debug)]
    pub struct EventView as "Event" from event: &LoggedEvent {
        /// Its id, with which `Last-Event-ID` resumes.
        #[example = "2f1-1a"]
        id: String = event.position.to_string(),
        /// Its type, also the name of the server-sent event.
        r#type: EventType = event.kind.as_str().into(),
        at: Timestamp = event.at.into(),
        /// The records that it refers to.
        data: EventDataView = event.kind.references().into(),
    }
}

output! {
    /// The records that an event refers to.
    #[derive(Clone, Debug)]
    pub struct EventDataView as "EventData" from references: EventReferences {
        /// Id of the file.
        #[optional]
        file_id: Option<FileId> = references.file,
        /// Id of the execution.
        #[optional]
        job_execution_id: Option<ExecutionId> = references.execution,
        /// Name of the table.
        #[optional]
        table: Option<String> = references.table,
        /// Id of the model.
        #[optional]
        ml_model_id: Option<ModelId> = references.model,
        /// Number of the model's version.
        #[optional]
        version_number: Option<u32> = references.version_number,
        /// Id of the notification.
        #[optional]
        notification_id: Option<NotificationId> = references.notification,
        /// Id of the instrument.
        #[optional]
        instrument_id: Option<InstrumentId> = references.instrument,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "follow_events",
        method: Method::Get,
        path: "/api/v1/events",
        tag: Tag::Events,
        summary: "Follows what happens in the organization",
        description: "Server-sent events from now on, or after the event that the header `Last-Event-ID` \
            names. Events are stored for an hour; an older or unknown id resumes at the oldest one. \
            `event` is the type and `id` the id of `data`, an object `{id, type, at, data}`. Types: \
            `file.confirmed`, `file.deleted`, `job_execution.started`, `.completed`, `.failed`, \
            `.cancelled` and `.reverted`, `data.written`, `table.changed`, `model.ready`, `model.failed`, \
            `instrument.online`, `instrument.offline`, `instrument.error`, and `notification.created` of the \
            caller. The inner `data` holds `file_id`, `job_execution_id`, `table`, `ml_model_id`, \
            `version_number`, `notification_id` and `instrument_id` as far as they apply. The stream ends when the key is revoked, or the session ends. At most 32 logs, \
            trainings and event streams of an organization are followed at a time.",
        returns: "The events",
        refusals: &[(503, "Too many streams of the organization are followed")],
    }
    .served_by_hand::<Read, NoBody, (), (), EventStream<EventView>>()
    .with_request_headers(&[RequestHeader {
        name: "Last-Event-ID",
        description: "Id of the last event that was received; the stream continues after it.",
        pattern: "^([0-9a-f]{1,15}-[0-9a-f]{1,15})?$",
    }])
}
