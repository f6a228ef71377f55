//! `DELETE /api/v1/instruments/{instrument_id}`

use labdata_application::Error;
use labdata_application::instruments::delete_instrument::delete_instrument;
use labdata_domain::refusal::Resource;

use super::InstrumentPath;
use crate::{About, Admin, Call, Method, NoBody, NoContent, Operation, OrNotFound, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "delete_instrument",
        method: Method::Delete,
        path: "/api/v1/instruments/{instrument_id}",
        tag: Tag::Instruments,
        summary: "Deletes an instrument",
        description: "An instrument that files or triggers refer to is not deleted.",
        returns: "It is deleted",
        refusals: &[(400, "Files, or a job's trigger, refer to it")],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, (), InstrumentPath>) -> Result<NoContent, Error> {
    let id = call.path.instrument_id.or_not_found(Resource::Instrument)?;
    delete_instrument(&call.services, &call.actor, id).await?;
    Ok(NoContent)
}
