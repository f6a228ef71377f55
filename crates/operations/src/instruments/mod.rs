//! Instruments that files come from.

use labdata_domain::{ids::InstrumentId, instruments::Instrument};
use labdata_request_body::{
    Timestamp,
    fields::required,
    output,
    readers::{MaybeId, id},
    shape,
};

use crate::Operation;

pub mod create;
pub mod delete;
pub mod device;
pub mod device_status;
pub mod find;
pub mod get;
pub mod heartbeat;
pub mod images;
pub mod list;
pub mod readers;
pub mod update;

pub(crate) fn operations() -> Vec<Operation> {
    vec![
        create::operation(),
        list::operation(),
        readers::operation(),
        find::operation(),
        get::operation(),
        update::operation(),
        delete::operation(),
        heartbeat::operation(),
        device::operation(),
        device_status::operation(),
    ]
}

shape! {
    /// The path of an instrument.
    #[derive(Clone, Copy, Debug)]
    pub struct InstrumentPath {
        /// The instrument's id
        instrument_id: MaybeId<InstrumentId> = required(id()),
    }
}

output! {
    /// An instrument.
    #[derive(Clone, Debug)]
    pub struct InstrumentView as "Instrument" from instrument: Instrument {
        /// Its id.
        id: InstrumentId = instrument.id,
        /// Its name, unique within the organization.
        name: String = instrument.name,
        /// Remarks for people.
        description: Option<String> = instrument.description,
        /// Its kind.
        #[example = "plate_reader"]
        instrument_type: Option<String> = instrument.instrument_type,
        /// Reader of its files: `auto`, or a name that `GET /readers` lists.
        #[example = "auto"]
        reader: Option<String> = instrument.reader,
        /// IANA name of the time zone of times in its files.
        #[example = "Europe/Berlin"]
        timezone: Option<String> = instrument.timezone,
        created_at: Timestamp = instrument.created_at.into(),
    }
}
