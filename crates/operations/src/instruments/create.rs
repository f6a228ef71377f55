//! `POST /api/v1/instruments`

use labdata_application::Error;
use labdata_application::instruments::create_instrument::{CreateInstrument, create_instrument};
use labdata_domain::{
    instruments::{
        AUTO_READER, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH, MAX_READER_LENGTH,
        MAX_TIMEZONE_LENGTH, MAX_TYPE_LENGTH,
    },
    patterns,
};
use labdata_request_body::{
    Reader as _,
    fields::{optional, required},
    readers::text,
    shape,
};
use serde_json::json;

use super::InstrumentView;
use crate::{About, Admin, Call, JsonBody, Method, Operation, Tag};

shape! {
    /// The instrument to register.
    #[derive(Clone, Debug)]
    pub struct CreateInstrumentBody {
        /// Its name, unique within the organization.
        name: String = required(text(1..=MAX_NAME_LENGTH).with("pattern", patterns::ONE_LINE)),
        /// Remarks for people.
        description: Option<String> = optional(text(..=MAX_DESCRIPTION_LENGTH)),
        /// Its kind.
        instrument_type: Option<String> =
            optional(text(..=MAX_TYPE_LENGTH).example("plate_reader")),
        /// Reader of its files: `auto`, or a name that `GET /readers` lists. Files are read when they are
        /// confirmed.
        reader: Option<String> = optional(text(..=MAX_READER_LENGTH).example(AUTO_READER)),
        /// IANA name of the time zone of times in its files.
        timezone: Option<String> = optional(text(..=MAX_TIMEZONE_LENGTH).example("Europe/Berlin")),
    }
    example json!({
        "name": "Reader 1",
        "instrument_type": "plate_reader",
        "reader": "auto",
        "timezone": "Europe/Berlin",
    });
}

pub(super) fn operation() -> Operation {
    About {
        name: "create_instrument",
        method: Method::Post,
        path: "/api/v1/instruments",
        tag: Tag::Instruments,
        summary: "Registers an instrument",
        description: "Its name is unique within the organization. Uploads refer to the instrument by its \
            id.",
        returns: "The instrument",
        refusals: &[
            (400, "There is no such reader or time zone"),
            (409, "The organization has an instrument of this name"),
        ],
    }
    .runs(run)
    .creating()
}

async fn run(call: Call<Admin, JsonBody<CreateInstrumentBody>>) -> Result<InstrumentView, Error> {
    let command = CreateInstrument {
        name: call.body.name,
        description: call.body.description,
        instrument_type: call.body.instrument_type,
        reader: call.body.reader,
        timezone: call.body.timezone,
    };
    let instrument = create_instrument(&call.services, &call.actor, command).await?;
    Ok(instrument.into())
}
