//! `GET /api/v1/instruments/by-name`

use labdata_application::{Error, instruments::find_instrument::find_instrument};
use labdata_domain::{ids::InstrumentId, instruments::Instrument};
use labdata_request_body::{fields::required, output, readers::text, shape};

use crate::{About, Call, Method, NoBody, Operation, Tag, Write};

shape! {
    /// The instrument to find.
    #[derive(Clone, Debug)]
    pub struct FindInstrumentQuery {
        /// Its name.
        name: String = required(text(1..)),
    }
}

output! {
    /// The id of an instrument.
    #[derive(Clone, Debug)]
    pub struct FoundInstrumentView as "FoundInstrument" from instrument: Instrument {
        /// Its id.
        id: InstrumentId = instrument.id,
        /// Its name.
        name: String = instrument.name,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "find_instrument",
        method: Method::Get,
        path: "/api/v1/instruments/by-name",
        tag: Tag::Instruments,
        summary: "Finds the instrument of a name",
        description: "For a program that uploads the files of an instrument with a key that reads nothing.",
        returns: "The instrument",
        refusals: &[(404, "The organization has no instrument of this name")],
    }
    .runs(run)
}

async fn run(call: Call<Write, NoBody, FindInstrumentQuery>) -> Result<FoundInstrumentView, Error> {
    let instrument = find_instrument(&call.services, &call.actor, &call.query.name).await?;
    Ok(instrument.into())
}
