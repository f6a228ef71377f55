//! SQL queries of clients: checks and placeholders before PostgreSQL runs them.
//!
//! Placeholders are found and counted, and queries that could only fail are refused with a clear
//! reason. This is no security boundary: the adapter isolates every query it runs.

mod failure;
mod lexer;
mod named_tables;
mod refusal;
mod screen;
mod system_names;

use lexer::{TokenKind, tokenize};

pub use failure::{
    DatabaseMessage, MAX_ROW_BYTES, PYTHON_QUERY_LIMITS, QUERY_LIMITS, QueryFailure, QueryLimits,
    SNAPSHOT_LIMITS, STREAM_LIMITS,
};
pub use refusal::Refusal;
pub(crate) use screen::is_refused_anywhere;

/// Maximum length of a query in bytes.
pub const MAX_LENGTH: usize = 256 << 10;

/// A single `SELECT` (or `WITH … SELECT`, `VALUES`, `TABLE`) whose parameters are written `$1`,
/// `$2`, ….
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryText {
    text: String,
    parameters: usize,
}

impl QueryText {
    /// Reads a query. Its parameters are written as `%s`, one after the other, or as `$1`, `$2`, …;
    /// outside of literals and comments, `%%` stands for `%`.
    ///
    /// # Errors
    /// [`Refusal`] if it is no single query, or uses names that queries may not use.
    pub fn parse(sql: &str) -> Result<Self, Refusal> {
        if sql.len() > MAX_LENGTH {
            return Err(Refusal::new("the query is longer than 256 KiB"));
        }
        if sql.contains('\0') {
            return Err(Refusal::new("the query contains a NUL character"));
        }
        let tokens = tokenize(sql)?;
        let end = screen::check(sql, &tokens)?;
        let body = sql.get(..end).unwrap_or(sql);
        let positional = tokens
            .iter()
            .filter(|it| matches!(it.kind, TokenKind::Percent))
            .count();
        let numbered = tokens.iter().filter_map(|it| match it.kind {
            TokenKind::Numbered(number) => Some(number),
            _ => None,
        });
        let numbered = numbered.max().unwrap_or(0);
        if positional > 0 && numbered > 0 {
            return Err(Refusal::new(
                "a query uses either %s or $1, $2, …, not both",
            ));
        }
        let mut text = String::with_capacity(body.len() + positional * 4);
        let (mut copied, mut seen) = (0, 0_usize);
        for it in tokens.iter().filter(|it| it.end <= end) {
            let replacement = match it.kind {
                TokenKind::Percent => {
                    seen += 1;
                    // Blanks keep it apart from an adjacent name or number.
                    format!(" ${seen} ")
                }
                TokenKind::EscapedPercent => "%".to_owned(),
                _ => continue,
            };
            text.push_str(body.get(copied..it.start).unwrap_or_default());
            text.push_str(&replacement);
            copied = it.end;
        }
        text.push_str(body.get(copied..).unwrap_or_default());
        Ok(Self {
            text,
            parameters: positional.max(numbered),
        })
    }

    /// Returns the text for PostgreSQL, with the line breaks of the original and no final
    /// semicolon.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Refuses a number of values that differs from the number of parameters.
    ///
    /// # Errors
    /// [`Refusal`], with both numbers.
    pub fn check_parameters(&self, values: usize) -> Result<(), Refusal> {
        check_parameter_count(self.parameters, values)
    }
}

/// Refuses a number of values that differs from the number of placeholders.
///
/// # Errors
/// [`Refusal`], with both numbers.
pub fn check_parameter_count(placeholders: usize, values: usize) -> Result<(), Refusal> {
    if values == placeholders {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "the query has {placeholders} placeholders, but params has {values} values"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(sql: &str) -> String {
        QueryText::parse(sql).map_or_else(|refusal| refusal.0, |query| query.text)
    }

    #[test]
    fn percent_s_becomes_a_numbered_parameter_wherever_sql_stands() {
        assert_eq!(rewritten("select %s"), "select  $1 ");
        assert_eq!(
            rewritten("select a from t where a=%s and b = any(%s)"),
            "select a from t where a= $1  and b = any( $2 )"
        );
        assert_eq!(rewritten("select %s::int%%%s"), "select  $1 ::int% $2 ");
    }

    #[test]
    fn literals_names_and_comments_are_left_alone() {
        for sql in [
            "select '%s', 'it''s %s', e'\\'%s', E'\\\\', $$%s ; $$, $a$ $$ %s $a$, U&'%s'",
            "select \"%s\" from t -- %s ; drop\n/* %s /* ; */ %s */ where a like '%%s'",
            "select a%some_column, a % s.b from t s",
        ] {
            assert_eq!(rewritten(sql), sql);
            QueryText::parse(sql).unwrap().check_parameters(0).unwrap();
        }
    }

    #[test]
    fn numbered_parameters_count_by_their_highest_number() {
        let query = QueryText::parse("select $2, $1, $2, '$9', a$7 from t").unwrap();
        query.check_parameters(2).unwrap();
        assert_eq!(
            query.check_parameters(1).unwrap_err().to_string(),
            "the query has 2 placeholders, but params has 1 values"
        );
        assert!(rewritten("select $1, %s").contains("not both"));
        assert!(rewritten("select %(name)s").contains("%(name)s"));
    }

    #[test]
    fn one_trailing_semicolon_is_dropped_and_no_other() {
        assert_eq!(rewritten("select 1 ; -- done"), "select 1 ");
        assert_eq!(rewritten("select 1;;"), "select 1");
        for sql in ["select 1; select 2", "commit; drop table a", ";"] {
            assert!(QueryText::parse(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn only_queries_begin_as_queries_do() {
        for sql in [
            "select 1",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "values (1)",
            "table a",
            "(select 1) union select 2",
        ] {
            assert!(QueryText::parse(sql).is_ok(), "{sql}");
        }
        for sql in [
            "",
            "  -- nothing",
            "update a set b = 1",
            "commit",
            "do $$ $$",
            "explain select 1",
            "copy a to stdout",
            "prepare a as select 1",
            "reset role",
            "set role x",
            "lock a",
            "listen a",
        ] {
            assert!(QueryText::parse(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn parentheses_must_close_what_the_query_itself_opened() {
        for sql in [
            "select 1) as a, (select 2",
            "select (1",
            "select 1)",
            "select (')'",
        ] {
            assert!(rewritten(sql).contains("parentheses"), "{sql}");
        }
        assert!(
            rewritten(&format!(
                "select {}1{}",
                "(".repeat(20_000),
                ")".repeat(20_000)
            ))
            .contains("deep")
        );
    }

    #[test]
    fn unterminated_literals_are_refused() {
        for sql in [
            "select 'a",
            "select \"a",
            "select 1 /* a /* b */",
            "select $a$ $b$",
        ] {
            assert!(rewritten(sql).contains("never ends"), "{sql}");
        }
    }

    #[test]
    fn functions_and_names_of_the_server_are_refused_however_they_are_written() {
        for sql in [
            "select set_config('role', 'x', false)",
            "select PG_SLEEP (1)",
            "select pg_catalog.pg_sleep(1)",
            "select \"pg_sleep\"(1)",
            "select pg_sleep/**/(1)",
            "select lo_create(1)",
            "select query_to_xml('select 1', true, true, '')",
            "select 'a'::regclass",
            "select cast('a' as \"regclass\")",
            "select * from pg_class",
            "select * from labdata.api_key",
            "select * from information_schema.tables",
            "select * from org_0191d5a4000070008000000000000000.sample",
            "select * from U&\"\\0070g_class\"",
            "select nextval('a')",
        ] {
            assert!(QueryText::parse(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn names_of_a_laboratory_are_not_taken_for_the_servers() {
        for sql in [
            "select pg_per_ml, s.pg_ml from sample s",
            "select pg_typeof(a), now() from t",
            "select set_config from t",
            "select org_1.x from t org_1",
        ] {
            assert!(QueryText::parse(sql).is_ok(), "{sql}");
        }
    }

    #[test]
    fn words_that_postgresql_reads_as_values_are_refused() {
        for (sql, column) in [
            ("select user from t", "\"user_\""),
            ("select name, USER from t", "\"user_\""),
            (
                "select 1 where current_date > '2026-01-01'",
                "write now()::date",
            ),
            ("select localtimestamp(3)", "\"localtimestamp_\""),
            ("select * from user", "\"user_\""),
            ("select * from t order by session_user", "\"session_user_\""),
        ] {
            assert!(rewritten(sql).contains(column), "{}", rewritten(sql));
        }
        for sql in [
            "select user_, users, \"user\" from t",
            "select t.user_, 'user', true, null from user_ t -- user",
            "select name as user from t",
        ] {
            assert!(QueryText::parse(sql).is_ok(), "{sql}");
        }
    }

    #[test]
    fn the_text_is_kept_to_the_letter_but_for_placeholders_and_the_last_semicolon() {
        let sql = "select 1 - 2 / 3, 4.5e1 -- of \"a\"\n";
        assert_eq!(QueryText::parse(sql).unwrap().as_str(), sql);
        assert_eq!(rewritten("select 1 - %s / %s"), "select 1 -  $1  /  $2 ");
        assert_eq!(rewritten("select 1 ; ;"), "select 1 ");
    }

    #[test]
    fn a_query_has_at_most_256_kib() {
        let padded = |length: usize| format!("select 1{}", " ".repeat(length - 8));
        assert!(QueryText::parse(&padded(MAX_LENGTH)).is_ok());
        assert!(rewritten(&padded(MAX_LENGTH + 1)).contains("256 KiB"));
    }

    #[test]
    fn parentheses_may_be_nested_250_deep() {
        let nested = |depth: usize| format!("select {}1{}", "(".repeat(depth), ")".repeat(depth));
        assert!(QueryText::parse(&nested(250)).is_ok());
        assert!(rewritten(&nested(251)).contains("deep"));
    }

    #[test]
    fn functions_about_privileges_are_refused_and_names_like_theirs_are_not() {
        assert!(rewritten("select has_table_privilege('a', 'b')").contains("not allowed"));
        assert!(QueryText::parse("select has_mold(a), my_privilege(a) from t").is_ok());
    }
}
