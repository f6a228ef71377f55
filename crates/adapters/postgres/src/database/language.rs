//! Language of the server's messages.

use diesel::{QueryableByName, sql_types::Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

#[derive(QueryableByName)]
struct Setting {
    #[diesel(sql_type = Text)]
    value: String,
}

/// The language in which the server reports errors to a session of the platform; `None` for English,
/// which [`super::condition`] reads. Sessions ask for English, but a server may reserve that setting
/// for its administrators.
pub(crate) async fn foreign_messages(
    connection: &mut AsyncPgConnection,
) -> Result<Option<String>, diesel::result::Error> {
    let query = diesel::sql_query("SELECT current_setting('lc_messages') AS value");
    let Setting { value } = query.get_result(connection).await?;
    Ok(Some(value).filter(|language| !is_english(language)))
}

fn is_english(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    let (language, _) = locale.split_once(['_', '.', '-']).unwrap_or((&locale, ""));
    // Windows has names in place of codes, and no locale is that of the program's own texts.
    ["", "c", "posix", "en", "english"].contains(&language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_of_english_are_known_by_their_beginning() {
        for english in [
            "",
            "C",
            "C.UTF-8",
            "POSIX",
            "en_US.UTF-8",
            "en-GB",
            "English_Canada.1252",
        ] {
            assert!(is_english(english), "{english}");
        }
        for foreign in [
            "de_DE.UTF-8",
            "es",
            "German_Germany.1252",
            "enm_GB",
            "cs_CZ",
        ] {
            assert!(!is_english(foreign), "{foreign}");
        }
    }
}
