//! Kinds of readers.

/// A reader: it takes the exports of one software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Name, by which instruments and requests choose it.
    pub name: &'static str,
    /// The software, for people.
    pub title: &'static str,
    /// Extensions of its files, in lower case, without a dot.
    pub extensions: &'static [&'static str],
}
