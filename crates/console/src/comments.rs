//! Scripts without their comments, as they are sent: the documentation of types is a fifth of their size.

/// The script with its comments that begin a line left out. Every line stays where it is, so that browsers name the
/// lines of the source.
pub(crate) fn without_comments(script: &str) -> String {
    let mut kept = String::with_capacity(script.len());
    let mut is_open = false;
    for line in script.lines() {
        let mut rest = line;
        // A comment of a type may stand before code, `/** @type {Column} */ (found)`.
        while is_open || rest.trim_start().starts_with("/**") {
            let Some((_, after)) = rest.split_once("*/") else {
                is_open = true;
                rest = "";
                break;
            };
            is_open = false;
            rest = after;
        }
        if !rest.trim_start().starts_with("//") {
            kept.push_str(rest);
        }
        kept.push('\n');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::without_comments;

    #[test]
    fn comments_are_left_out_and_lines_stay_where_they_are() {
        let script = "// The page.\n\n/**\n * Adds.\n * @param {number} a\n */\nconst f = (/** @type {any} */ a) => {\n  \
                      /** @type {number} */ (a).toFixed(); // exact\n  /** One line. @type {Map<string, any>} */\n  \
                      const url = \"http://x\" + a\n    * 2;\n};\n";
        let kept = "\n\n\n\n\n\nconst f = (/** @type {any} */ a) => {\n (a).toFixed(); // exact\n\n  \
                    const url = \"http://x\" + a\n    * 2;\n};\n";
        assert_eq!(without_comments(script), kept);
    }
}
