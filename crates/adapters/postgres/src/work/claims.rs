//! Claims of waiting runs, of jobs and of trainings.

/// Number of an organization's oldest runs that other claims may be taking at this moment: this many
/// more are examined than are wanted.
pub(crate) const CLAIMED_BY_OTHERS: i64 = 64;

/// Makes the statement that claims waiting runs of one table, in turns: an organization's next run comes
/// after the next ones of those that have fewer running. The organizations with waiting runs are found
/// by jumping through the index from one to the next, so their number of runs does not matter. Of the
/// rows that were locked, those over the slots of organizations with a running run stay waiting, where
/// there are several organizations. The array makes the planner choose the rows once.
///
/// Parameters: time, end of the lease, free slots, rows to examine per organization, slots of
/// organizations with a running run. Further ones are those of `and_sets`. `recorded` is empty, or a
/// further part that stores what follows from `claimed`.
macro_rules! claim_statement {
    (table: $table:literal, from: $waiting:literal to: $running:literal, and_sets: $sets:literal,
     lease: $lease:literal by $key:literal, joined: $parent:literal on $parent_key:literal,
     columns: $columns:literal, recorded: $recorded:literal) => {
        concat!(
            "WITH RECURSIVE waiting AS (
                (SELECT organization_id FROM labdata.", $table, " WHERE status = '", $waiting, "'
                 ORDER BY organization_id LIMIT 1)
                UNION ALL
                SELECT next.organization_id FROM waiting CROSS JOIN LATERAL (
                    SELECT it.organization_id FROM labdata.", $table, " it
                    WHERE it.status = '", $waiting, "'
                    AND it.organization_id > waiting.organization_id
                    ORDER BY it.organization_id LIMIT 1) next),
            turns AS (
                SELECT oldest.id, oldest.created_at, held.running + row_number() OVER (
                    PARTITION BY waiting.organization_id ORDER BY oldest.created_at, oldest.id) AS turn
                FROM waiting
                CROSS JOIN LATERAL (
                    SELECT count(*) AS running FROM labdata.", $lease, " lease
                    WHERE lease.organization_id = waiting.organization_id) held
                CROSS JOIN LATERAL (
                    SELECT it.id, it.created_at FROM labdata.", $table, " it
                    WHERE it.status = '", $waiting, "'
                    AND it.organization_id = waiting.organization_id
                    ORDER BY it.created_at, it.id LIMIT $4) oldest),
            locked AS MATERIALIZED (
                SELECT it.id, turns.turn, turns.created_at
                FROM labdata.", $table, " it JOIN turns ON turns.id = it.id
                WHERE it.status = '", $waiting, "' ORDER BY turns.turn, turns.created_at, it.id
                LIMIT $3 FOR UPDATE OF it SKIP LOCKED),
            chosen AS (
                SELECT id, turn, row_number() OVER (ORDER BY turn, created_at, id) AS slot FROM locked),
            claimed AS (
                UPDATE labdata.", $table, " it
                SET status = '", $running, "', started_at = $1, attempt = it.attempt + 1", $sets, "
                FROM labdata.", $parent, " ", $parent, "
                WHERE ", $parent, ".organization_id = it.organization_id
                AND ", $parent, ".id = it.", $parent_key, "
                AND it.id = ANY (ARRAY(
                    SELECT chosen.id FROM chosen WHERE chosen.turn = 1 OR chosen.slot <= $5
                    OR (SELECT count(*) FROM (SELECT 1 FROM labdata.organization LIMIT 2) several) < 2))
                RETURNING it.*, ", $columns, "),
            held AS (
                INSERT INTO labdata.", $lease, " (", $key, ", organization_id, attempt, expires_at)
                SELECT id, organization_id, attempt, $2 FROM claimed)
            ", $recorded, "
            SELECT * FROM claimed ORDER BY created_at, id"
        )
    };
}
pub(crate) use claim_statement;
