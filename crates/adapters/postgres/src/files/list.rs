//! File lists, newest first.
//!
//! Instruments and extensions have indexes in the list's order. A filter that compares paths asks the
//! trigram index for a number that few paths have, else walks the newest files and, where they do not
//! fill the page, asks the index for the whole part (docs/adr/0017).

use diesel::{
    dsl::{AsSelect, SqlTypeOf},
    pg::Pg,
    sql_types::{Array, Bool, Nullable, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{files::FileFilter, ids::OrganizationId, page::PageRequest};
use uuid::Uuid;

use crate::{
    database::{errors::Fault, paging::overfetched, pool::Connection, prepared::Prepared},
    files::{
        conditions::{FileConditions, IndexOwners, Number},
        rows::FileRow,
        search_index::MONTH,
    },
};

/// The columns of [`FileRow`], in its order.
const COLUMNS: &str = "id, instrument_id, job_execution_id, source_type, status, original_path, \
     content_type, object_key, upload_expires_at, size_bytes, crc32c, uploaded_at, \
     file_created_at, created_at";

const NEWEST_FIRST: &str = " ORDER BY uploaded_at DESC, id DESC";

/// A statement that returns [`FileRow`]s.
type Rows<'q> = Prepared<'q, SqlTypeOf<AsSelect<FileRow, Pg>>>;

/// Limits of a search by a part of the path, in files.
#[derive(Clone, Copy, Debug)]
pub struct SearchLimits {
    /// The walk through the newest files ends here, and the trigram index is asked.
    pub walked: i64,
    /// If more files match, the trigram index only says where to walk on.
    pub found: i64,
    /// This number of the newest files tells whether many have the number of a part.
    pub sampled: i64,
    /// If more of the sample have it, the index is not asked for it: it would read a long list.
    pub frequent: i64,
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self {
            walked: 4_096,
            found: 4_095,
            sampled: 512,
            frequent: 8,
        }
    }
}

/// Reads the rows of one page, and one more if more follow.
pub(crate) async fn read_page(
    connection: &mut Connection,
    limits: SearchLimits,
    organization: OrganizationId,
    filter: &FileFilter,
    page: PageRequest,
) -> Result<Vec<FileRow>, Fault> {
    let conditions = FileConditions::new(organization, filter, page);
    let wanted = overfetched(page);
    // A search whose caller leaves is cancelled: without an index it may read the whole list.
    connection.begin_rows();
    let mut rows: Vec<FileRow> = if !conditions.compare_paths() {
        let mut query = Rows::new();
        query.sql("SELECT ").sql(COLUMNS).sql(" FROM ");
        push_newest(&conditions, wanted, &mut query);
        query.load(connection).await?
    // Without a limit all matches are read anyway, which a plain walk does best.
    } else if page.limit.is_some() && conditions.are_indexed() {
        search(connection, limits, &conditions, wanted).await?
    } else {
        walk(&conditions, wanted).load(connection).await?
    };
    connection.end_rows();
    // The statements ask for a round number of rows.
    rows.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
    Ok(rows)
}

/// Finds the newest files that match: by a number that few have, among the newest of the list, or by the
/// whole part in the trigram index.
async fn search(
    connection: &mut Connection,
    limits: SearchLimits,
    conditions: &FileConditions,
    wanted: i64,
) -> Result<Vec<FileRow>, Fault> {
    // Asked each time: the index may be missing, and a second organization may be added.
    let mut index = Prepared::<(Bool, Bool)>::new();
    index.sql(
        "SELECT to_regclass('labdata.file_search_idx') IS NOT NULL, \
         (SELECT count(*) FROM (SELECT FROM labdata.organization LIMIT 2) o) < 2",
    );
    let owners = match index.get_result(connection).await? {
        (true, true) => Some(IndexOwners::One),
        (true, false) => Some(IndexOwners::Several),
        (false, _) => None,
    };
    // Words such as `plate` are in most paths, but a number is in few: its trigram lists are short.
    if let (Some(owners), Some(number)) = (owners, conditions.number()) {
        let query = search_by_number(limits, conditions, number, owners, wanted);
        let found: Option<Vec<Uuid>> = query.get_result(connection).await?;
        if let Some(ids) = found {
            let count = ids.len();
            let rows: Vec<FileRow> = with_ids(conditions, ids).load(connection).await?;
            // If one was deleted since, fewer rows would look like the end of the list.
            if rows.len() == count {
                return Ok(rows);
            }
        }
    }
    // A part that many paths have fills the page here, at a fraction of the index's cost.
    let newest: Vec<FileRow> = walk_newest(limits, conditions, wanted)
        .load(connection)
        .await?;
    // A short page is no proof that the list ends: the walk stops after a number of files.
    if i64::try_from(newest.len()).is_ok_and(|found| found >= wanted) {
        return Ok(newest);
    }
    let query = match owners {
        Some(owners) => search_by_index(limits, conditions, owners, wanted),
        None => walk(conditions, wanted),
    };
    Ok(query.load(connection).await?)
}

/// The ids of the newest matches, by the number that their paths have; null if many files may have it. Words
/// repeat in names of files and numbers differ, so the index finds them sooner for the number alone.
fn search_by_number<'q>(
    limits: SearchLimits,
    conditions: &'q FileConditions,
    number: &'q Number,
    owners: IndexOwners,
    wanted: i64,
) -> Prepared<'q, Nullable<Array<SqlUuid>>> {
    let mut query = Prepared::new();
    query.sql("WITH with_number AS MATERIALIZED (SELECT id, uploaded_at, path_folded FROM labdata.file WHERE ");
    conditions.push_pattern(&number.pattern, owners, &mut query);
    // Planned without the limit, which would let the planner expect to be done soon with a walk.
    query.sql("), few AS MATERIALIZED (SELECT * FROM with_number");
    query.limit(limits.found + 1);
    // The sample first: a CTE is run when it is first read, so a frequent number costs no lookup.
    query.sql(") SELECT CASE WHEN (SELECT count(*) FROM (SELECT path_folded FROM ");
    push_newest(conditions, limits.sampled, &mut query);
    query.sql(") newest WHERE strpos(path_folded, ");
    query.text(&number.text).sql(") > 0) > ");
    query.count(limits.frequent);
    query.sql(" OR (SELECT count(*) FROM few) > ");
    query.count(limits.found);
    query.sql(" THEN NULL ELSE ARRAY(SELECT id FROM few WHERE true");
    conditions.push_cursor(&mut query);
    conditions.push_path(&mut query);
    query.sql(NEWEST_FIRST).limit(wanted).sql(") END");
    query
}

/// The files of the list with these ids.
fn with_ids(conditions: &FileConditions, ids: Vec<Uuid>) -> Rows<'_> {
    let mut query = Rows::new();
    query.sql("SELECT ").sql(COLUMNS);
    query.sql(" FROM labdata.file WHERE organization_id = ");
    query.uuid(conditions.organization);
    query.sql(" AND id = ANY (").uuids(ids);
    query.sql(")").sql(NEWEST_FIRST);
    query
}

/// Adds the newest files of the list, by the indexes in its order, as a table expression with
/// `ORDER BY` and `LIMIT`. Paths are not compared.
fn push_newest<'q, Row>(conditions: &'q FileConditions, limit: i64, query: &mut Prepared<'q, Row>) {
    match conditions.extensions.as_deref() {
        // Each extension has its own order in the index; they are merged.
        Some(several) if several.len() != 1 => {
            query.sql("unnest(").texts(several.to_vec());
            query.sql(") AS wanted (e) CROSS JOIN LATERAL (SELECT * FROM labdata.file WHERE ");
            conditions.push_range(query);
            query.sql(" AND extension = e").sql(NEWEST_FIRST);
            // Each extension may fill the page alone, so each is read up to the limit.
            query.sql(" LIMIT ").count(limit).sql(") f");
        }
        _ => {
            query.sql("labdata.file WHERE ");
            conditions.push_range(query);
            conditions.push_extensions(query);
        }
    }
    push_order(conditions, limit, query);
}

/// Adds the list's order and a limit.
fn push_order<Row>(conditions: &FileConditions, limit: i64, query: &mut Prepared<'_, Row>) {
    query.sql(NEWEST_FIRST);
    if conditions.instrument.is_none() && conditions.extensions.is_none() {
        query.limit(limit);
    } else {
        // A LIMIT that is a parameter makes the database plan each execution, with the instrument and
        // the extension known: they decide which index is best.
        query.sql(" LIMIT ").count(limit);
    }
}

/// The matches among the newest files of the list.
fn walk_newest(limits: SearchLimits, conditions: &FileConditions, wanted: i64) -> Rows<'_> {
    let mut query = Rows::new();
    query.sql("SELECT ").sql(COLUMNS).sql(" FROM (SELECT ");
    query.sql(COLUMNS).sql(", path_folded FROM ");
    push_newest(conditions, limits.walked, &mut query);
    query.sql(") newest WHERE true");
    conditions.push_path(&mut query);
    query.sql(NEWEST_FIRST).limit(wanted);
    query
}

/// The matches among all files of the list, in its order until there are enough.
fn walk(conditions: &FileConditions, wanted: i64) -> Rows<'_> {
    let mut query = Rows::new();
    query.sql("SELECT ").sql(COLUMNS);
    query.sql(" FROM labdata.file WHERE ");
    conditions.push_range(&mut query);
    conditions.push_extensions(&mut query);
    conditions.push_path(&mut query);
    push_order(conditions, wanted, &mut query);
    query
}

/// All matches by the trigram index if they are few. If there are many, a walk: of the whole list if it is
/// short, else from the end of the newest month in which the index has a match.
///
/// `older` has the end of that month, null if the matches are few.
fn search_by_index(
    limits: SearchLimits,
    conditions: &FileConditions,
    owners: IndexOwners,
    wanted: i64,
) -> Rows<'_> {
    let mut query = Rows::new();
    query.sql("WITH found AS MATERIALIZED (SELECT id, uploaded_at FROM labdata.file WHERE ");
    conditions.push_indexed(owners, &mut query);
    // One more than the limit separates few matches from many without counting all.
    query.sql("), few AS MATERIALIZED (SELECT id, uploaded_at FROM found WHERE true");
    conditions.push_cursor(&mut query);
    query.limit(limits.found + 1);
    query.sql("), older AS MATERIALIZED (SELECT CASE WHEN (SELECT count(*) FROM few) <= ");
    query
        .count(limits.found)
        // A list shorter than the first walk has no older part to skip to.
        .sql(" THEN NULL WHEN NOT EXISTS (");
    query.sql("SELECT FROM labdata.file WHERE ");
    conditions.push_range(&mut query);
    conditions.push_extensions(&mut query);
    query
        .sql(NEWEST_FIRST)
        .sql(" OFFSET ")
        .count(limits.walked - 1);
    query.sql(") THEN 'infinity' ELSE (");
    push_end_of_newest_month(conditions, owners, &mut query);
    query.sql(") END AS than) SELECT ").sql(COLUMNS);
    query.sql(" FROM ((SELECT * FROM labdata.file WHERE organization_id = ");
    query.uuid(conditions.organization);
    query.sql(" AND id = ANY (ARRAY(SELECT id FROM few");
    query.sql(NEWEST_FIRST).limit(wanted);
    query.sql(")) AND (SELECT than IS NULL FROM older))");
    query.sql(" UNION ALL (SELECT * FROM labdata.file WHERE ");
    conditions.push_range(&mut query);
    conditions.push_extensions(&mut query);
    // Null in `than` makes this condition false, so the walk does not run when the matches are few.
    query.sql(" AND uploaded_at < (SELECT than FROM older)");
    conditions.push_path(&mut query);
    query.sql(NEWEST_FIRST).limit(wanted);
    query.sql(")) f").sql(NEWEST_FIRST).limit(wanted);
    query
}

/// Adds the query for the end of the newest month of the list in which the index has a match.
fn push_end_of_newest_month<'q>(
    conditions: &'q FileConditions,
    owners: IndexOwners,
    query: &mut Rows<'q>,
) {
    query.sql("SELECT (month + interval '1 month') AT TIME ZONE 'UTC' FROM (");
    query.sql("SELECT date_trunc('month', min(uploaded_at) AT TIME ZONE 'UTC') AS oldest, ");
    query.sql("date_trunc('month', max(uploaded_at) AT TIME ZONE 'UTC') AS newest ");
    query.sql("FROM labdata.file WHERE ");
    conditions.push_range(query);
    query.sql(") list CROSS JOIN LATERAL ");
    // Month by month from the newest: the first one with a match ends the search.
    query.sql("generate_series(newest, oldest, interval '-1 month') m (month) WHERE EXISTS (");
    // Planned apart from EXISTS, which the planner takes for one quick row of a table scan.
    query.sql("WITH matches AS MATERIALIZED (SELECT FROM labdata.file WHERE ");
    conditions.push_indexed(owners, query);
    query.sql(" AND ARRAY[").sql(MONTH);
    query.sql("] @> ARRAY[month]) SELECT FROM matches) LIMIT 1");
}
