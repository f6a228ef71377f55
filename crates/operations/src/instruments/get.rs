//! `GET /api/v1/instruments/{instrument_id}`

use labdata_application::Error;
use labdata_application::instruments::get_instrument::get_instrument;
use labdata_domain::refusal::Resource;

use super::{InstrumentPath, InstrumentView};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "get_instrument",
        method: Method::Get,
        path: "/api/v1/instruments/{instrument_id}",
        tag: Tag::Instruments,
        summary: "Shows an instrument",
        description: "Name, description and type of one instrument.",
        returns: "The instrument",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), InstrumentPath>) -> Result<InstrumentView, Error> {
    let id = call.path.instrument_id.or_not_found(Resource::Instrument)?;
    let instrument = get_instrument(&call.services, &call.actor, id).await?;
    Ok(instrument.into())
}
