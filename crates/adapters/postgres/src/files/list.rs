//! Listings of files, which cost about the same however many files there are: instruments and
//! extensions have indexes in the order of the list, and for parts of a path there is
//! [`crate::files::index`].

use diesel::{
    dsl::{AsSelect, SqlTypeOf},
    pg::Pg,
};
use diesel_async::RunQueryDsl;
use labdata_domain::{files::FileFilter, ids::OrganizationId, page::PageRequest};

use crate::{
    database::{errors::Fault, paging::overfetched, pool::Connection, prepared::Prepared},
    files::{
        conditions::FileConditions,
        index::{self, Memory},
        rows::FileRow,
    },
};

/// The columns of [`FileRow`], in its order.
pub(crate) const COLUMNS: &str = "id, instrument_id, job_execution_id, source_type, status, \
     original_path, content_type, object_key, upload_expires_at, size_bytes, crc32c, uploaded_at, \
     file_created_at, created_at";

pub(crate) const NEWEST_FIRST: &str = " ORDER BY uploaded_at DESC, id DESC";

/// A statement that returns [`FileRow`]s.
pub(crate) type Rows<'q> = Prepared<'q, SqlTypeOf<AsSelect<FileRow, Pg>>>;

/// The rows of a page of a listing, and one more where more follow.
pub(crate) async fn listed(
    connection: &mut Connection,
    memory: &Memory,
    organization: OrganizationId,
    filter: &FileFilter,
    page: PageRequest,
) -> Result<Vec<FileRow>, Fault> {
    let conditions = FileConditions::new(organization, filter, page);
    let wanted = overfetched(page);
    // A whole list is read as it is.
    let mut rows = if conditions.need_a_search() && page.limit.is_some() {
        index::search(connection, memory, &conditions, wanted).await?
    } else {
        in_order(&conditions, wanted).load(connection).await?
    };
    // The database was asked for a round number.
    rows.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
    Ok(rows)
}

/// The first files of a list, by the indexes in its order.
fn in_order<'q>(conditions: &'q FileConditions<'_>, wanted: i64) -> Rows<'q> {
    let mut query = Rows::new();
    query.sql("SELECT ").sql(COLUMNS).sql(" FROM ");
    let extensions = conditions.extensions.as_deref();
    match extensions.filter(|_| !conditions.need_a_search()) {
        // Each extension has an order of its own in the index; they are merged.
        Some(several) if several.len() > 1 => {
            query.sql("unnest(").texts(several.to_vec());
            query.sql(") AS wanted (e) CROSS JOIN LATERAL (SELECT * FROM labdata.file WHERE ");
            conditions.of_the_list(&mut query);
            query.sql(" AND extension = e").sql(NEWEST_FIRST);
            query.sql(" LIMIT ").count(wanted).sql(") f");
        }
        Some([one]) => {
            query.sql("labdata.file WHERE ");
            conditions.of_the_list(&mut query);
            query.sql(" AND extension = ").text(one);
        }
        _ => {
            query.sql("labdata.file WHERE ");
            conditions.all(&mut query);
        }
    }
    query.sql(NEWEST_FIRST);
    if conditions.instrument.is_none() && conditions.extensions.is_none() {
        query.limit(wanted);
    } else {
        // The database has to know which instrument or extension it is to choose its index well, so
        // it plans such a list every time.
        query.sql(" LIMIT ").count(wanted);
    }
    query
}
