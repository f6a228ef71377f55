//! Regular expressions of texts (ECMA 262), for schemas. The rules themselves are checked elsewhere.

/// A text that is not blank.
pub const NOT_BLANK: &str = r"^[^\u0000]*[^\s\u0000][^\u0000]*$";

/// A text on one line: not blank, no control characters.
pub const ONE_LINE: &str = r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$";
