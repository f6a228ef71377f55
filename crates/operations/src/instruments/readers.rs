//! `GET /api/v1/readers`

use labdata_application::{Error, instruments::list_readers::list_readers};
use labdata_domain::instruments::Reader;
use labdata_request_body::output;

use crate::{About, Call, Method, NoBody, Operation, Read, Tag};

output! {
    /// A reader of files of instruments.
    #[derive(Clone, Debug)]
    pub struct ReaderView as "Reader" from reader: Reader {
        /// Its name, by which instruments and requests choose it.
        #[example = "AGILENT_GEN5"]
        name: String = reader.name.to_owned(),
        /// The software whose exports it reads.
        #[example = "Agilent Gen5"]
        title: String = reader.title.to_owned(),
        /// Extensions of its files, in lower case, without a dot.
        extensions: Vec<String> =
            reader.extensions.iter().map(|&extension| extension.to_owned()).collect(),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "list_readers",
        method: Method::Get,
        path: "/api/v1/readers",
        tag: Tag::Instruments,
        summary: "Lists the readers of files of instruments",
        description: "By name. They are those of `allotropy`.",
        returns: "The readers",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody>) -> Result<Vec<ReaderView>, Error> {
    let readers = list_readers(&call.actor)?;
    Ok(readers.iter().copied().map(ReaderView::from).collect())
}
