//! Grammar of requirements (PEP 508), such as `pandas[parquet] >=2,<3; python_version >= "3.11"`.

use std::str::FromStr as _;

use pep440_rs::VersionSpecifiers;

/// Variables of markers, with their older names, which uv accepts too.
const MARKER_VARIABLES: [&str; 20] = [
    "python_version",
    "python_full_version",
    "os_name",
    "sys_platform",
    "platform_release",
    "platform_system",
    "platform_version",
    "platform_machine",
    "platform_python_implementation",
    "implementation_name",
    "implementation_version",
    "extra",
    "extras",
    "dependency_groups",
    "os.name",
    "sys.platform",
    "platform.version",
    "platform.machine",
    "platform.python_implementation",
    "python_implementation",
];

/// Longer operators stand before those that they begin with.
const MARKER_OPERATORS: [&str; 9] = ["===", "==", "!=", "~=", "<=", ">=", "<", ">", "in"];

/// Checks that a text is a requirement. Whether there is this kind of package shows in the installation.
///
/// # Errors
/// The reason, for the script's author.
pub(super) fn check_requirement(text: &str) -> Result<(), String> {
    let text = text.trim();
    let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    let (name, rest) = split_where(text, |it| !is_name(it));
    let is_framed = name.starts_with(|it: char| it.is_ascii_alphanumeric())
        && name.ends_with(|it: char| it.is_ascii_alphanumeric());
    if !is_framed {
        return Err(format!(
            "{text:?} does not begin with the name of a package"
        ));
    }
    let rest = match rest.strip_prefix('[') {
        None => rest,
        Some(extras) => {
            let (extras, rest) = extras
                .split_once(']')
                .ok_or_else(|| format!("{text:?}: the bracket is not closed"))?;
            if extras
                .chars()
                .any(|it| !is_name(it) && it != ',' && it != ' ')
            {
                return Err(format!("{text:?}: {extras:?} are no names of extras"));
            }
            rest.trim_start()
        }
    };
    let (constraint, marker) = match rest.strip_prefix('@') {
        // A URL can hold a semicolon, so only one behind a blank begins the marker.
        Some(url) => url.split_once(" ;").unwrap_or((url, "")),
        None => rest.split_once(';').unwrap_or((rest, "")),
    };
    let constraint = constraint.trim();
    if rest.starts_with('@') {
        if constraint.is_empty() {
            return Err(format!("{text:?}: the URL is missing"));
        }
    } else {
        let versions = constraint
            .strip_prefix('(')
            .and_then(|inner| inner.strip_suffix(')'))
            .unwrap_or(constraint);
        VersionSpecifiers::from_str(versions)
            .map_err(|_| format!("{text:?}: {constraint:?} are no versions"))?;
    }
    let has_marker = rest.len() > constraint.len() && !marker.is_empty();
    if has_marker && !is_marker(marker) {
        return Err(format!("{text:?}: {:?} is no marker", marker.trim()));
    }
    Ok(())
}

/// Comparisons with `and`, `or` and parentheses.
fn is_marker(text: &str) -> bool {
    let mut rest = text.trim_start();
    let mut depth = 0_usize;
    loop {
        while let Some(inner) = rest.strip_prefix('(') {
            depth += 1;
            rest = inner.trim_start();
        }
        let Some(behind) = after_comparison(rest) else {
            return false;
        };
        rest = behind;
        while let Some(outer) = rest.strip_prefix(')') {
            if depth == 0 {
                return false;
            }
            depth -= 1;
            rest = outer.trim_start();
        }
        if rest.is_empty() {
            return depth == 0;
        }
        // Only the syntax is checked, so which of both binds closer does not matter.
        let Some(next) = rest.strip_prefix("and").or_else(|| rest.strip_prefix("or")) else {
            return false;
        };
        rest = next.trim_start();
    }
}

/// Returns the text behind a comparison of two values.
fn after_comparison(text: &str) -> Option<&str> {
    let rest = after_value(text)?;
    let operator = |rest: &'_ str| {
        // In the order of the list, because `==` is also the beginning of `===`.
        MARKER_OPERATORS
            .iter()
            .find_map(|operator| rest.strip_prefix(operator).map(str::len))
    };
    // `not in` is the only operator of two words.
    let positive = rest
        .strip_prefix("not")
        .map(str::trim_start)
        .filter(|rest| rest.starts_with("in"))
        .unwrap_or(rest);
    let behind = positive.len().checked_sub(operator(positive)?)?;
    after_value(positive.get(behind..)?.trim_start())
}

/// Returns the text behind a variable or a quoted text, and behind the blanks that follow.
fn after_value(text: &str) -> Option<&str> {
    let quote = text.chars().next()?;
    if matches!(quote, '\'' | '"') {
        let (_, rest) = text.get(1..)?.split_once(quote)?;
        return Some(rest.trim_start());
    }
    let is_word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.');
    let (word, rest) = split_where(text, |it| !is_word(it));
    MARKER_VARIABLES.contains(&word).then_some(rest)
}

/// Splits a text before the first such character, and removes the blanks that follow.
fn split_where(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    let (word, rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_of_any_form_pass() {
        for text in [
            "six",
            " Labdata_Client >= 0.1 ",
            "a",
            "zope.interface==5.*",
            "labdata-client[pandas, polars]",
            "six[]",
            "pandas (>=2,<3)",
            "pandas>=2,<3,!=2.1.0",
            "numpy~=1.26; python_version < '3.13'",
            "numpy ; (sys_platform == \"linux\" and 'x86' in platform_machine) or os_name not in 'nt'",
            "pywin32; sys.platform=='win32'",
            "six @ https://example.org/six-1.0.whl",
            "six@file:///a;b.whl ; extra == 'test'",
            "six[x] @ git+https://example.org/six.git@v1#subdirectory=a",
        ] {
            assert_eq!(check_requirement(text), Ok(()), "{text:?}");
        }
    }

    #[test]
    fn a_text_that_is_no_requirement_is_refused() {
        for text in [
            "",
            " ",
            "-six",
            "six-",
            "./six",
            "https://example.org/six.whl",
            "six 1.0",
            "six >>1",
            "six >=",
            "six >=1 <2",
            "six [x",
            "six[a/b]",
            "six @",
            "six @ ; extra == 'x'",
            "six; windows",
            "six; sys_platform = 'linux'",
            "six; (sys_platform == 'linux'",
            "six; sys_platform == 'linux')",
            "six; sys_platform == 'linux' and",
            "six; sys_platform not == 'linux'",
            "six; sys_platform == linux",
            "six; 'a' == 'b",
            "six and seven",
        ] {
            assert!(check_requirement(text).is_err(), "{text:?} passes");
        }
    }
}
