//! The console: pages for people, served by the program and built of ES modules as they are written. They use
//! the public API alone.

mod plots;

use std::{io::Write as _, sync::LazyLock};

use flate2::{Compression, write::GzEncoder};
pub use plots::{Plots, plots};
use sha2::{Digest, Sha256};

/// A file of the console.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its path below the version.
    pub path: &'static str,
    /// Its media type.
    pub content_type: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! assets {
    ($($path:literal $content_type:expr),* $(,)?) => {
        /// Every file but the page itself.
        pub static ASSETS: &[Asset] = &[$(Asset {
            path: $path,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../assets/", $path)),
        }),*];
    };
}

assets! {
    "api.js" SCRIPT,
    "app.js" SCRIPT,
    "cells.js" SCRIPT,
    "choices.js" SCRIPT,
    "code.js" SCRIPT,
    "column_changes.js" SCRIPT,
    "curves.js" SCRIPT,
    "dom.js" SCRIPT,
    "editor.js" SCRIPT,
    "exact.js" SCRIPT,
    "figure.js" SCRIPT,
    "filters.js" SCRIPT,
    "format.js" SCRIPT,
    "grid.js" SCRIPT,
    "guard.js" SCRIPT,
    "heat.js" SCRIPT,
    "images.js" SCRIPT,
    "keys.js" SCRIPT,
    "list.js" SCRIPT,
    "log.js" SCRIPT,
    "markdown.js" SCRIPT,
    "mask_drawing.js" SCRIPT,
    "mask_editor.js" SCRIPT,
    "masks.js" SCRIPT,
    "palette.js" SCRIPT,
    "picture.js" SCRIPT,
    "plot.js" SCRIPT,
    "rights.js" SCRIPT,
    "row_form.js" SCRIPT,
    "saving.js" SCRIPT,
    "science.js" SCRIPT,
    "selection.js" SCRIPT,
    "sql.js" SCRIPT,
    "state.js" SCRIPT,
    "stream.js" SCRIPT,
    "tables.js" SCRIPT,
    "uploads.js" SCRIPT,
    "views.js" SCRIPT,
    "pages/admin.js" SCRIPT,
    "pages/alter.js" SCRIPT,
    "pages/annotations.js" SCRIPT,
    "pages/changed_rows.js" SCRIPT,
    "pages/chat.js" SCRIPT,
    "pages/curve_layouts.js" SCRIPT,
    "pages/curves.js" SCRIPT,
    "pages/definition.js" SCRIPT,
    "pages/device.js" SCRIPT,
    "pages/executions.js" SCRIPT,
    "pages/files.js" SCRIPT,
    "pages/home.js" SCRIPT,
    "pages/import_reading.js" SCRIPT,
    "pages/imports.js" SCRIPT,
    "pages/instruments.js" SCRIPT,
    "pages/integrations.js" SCRIPT,
    "pages/jobs.js" SCRIPT,
    "pages/linked.js" SCRIPT,
    "pages/models.js" SCRIPT,
    "pages/parameters.js" SCRIPT,
    "pages/people.js" SCRIPT,
    "pages/plate_parts.js" SCRIPT,
    "pages/plates.js" SCRIPT,
    "pages/publishing.js" SCRIPT,
    "pages/query.js" SCRIPT,
    "pages/rows.js" SCRIPT,
    "pages/sign_in.js" SCRIPT,
    "pages/tables.js" SCRIPT,
    "pages/trash.js" SCRIPT,
    "pages/triggers.js" SCRIPT,
    "plot.css" "text/css; charset=utf-8",
    "style.css" "text/css; charset=utf-8",
    "icon.svg" "image/svg+xml",
}

/// The page, with the place of the version.
const PAGE: &str = include_str!("../assets/index.html");

/// Placeholder of the version in the page.
const VERSION_PLACE: &str = "{version}";

/// Placeholder of the version of plotly.js in the page.
const PLOTS_PLACE: &str = "{plots}";

/// Placeholder of the links to the modules that the first page needs.
const PRELOADS_PLACE: &str = "{preloads}";

/// A link to a module, before its path.
const PRELOAD_START: &str = "<link rel=\"modulepreload\" href=\"console/{version}/";

/// A link to a module, after its path.
const PRELOAD_END: &str = "\">\n";

/// Modules that the first page is made of, with those that they import. Without links to them a browser would
/// find each only after the one that imports it has arrived.
const FIRST_MODULES: [&str; 2] = ["app.js", "pages/home.js"];

/// Number of bytes of the hash that a version shows.
const VERSION_BYTES: usize = 8;

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for asset in ASSETS {
        // A renamed file changes what pages load, even with the same bytes.
        hash.update(asset.path);
        hash.update(asset.bytes);
    }
    shortened(&hash.finalize())
});

static RENDERED: LazyLock<String> = LazyLock::new(|| {
    let modules = first_modules();
    let links = modules.iter();
    let preloads: String = links
        .flat_map(|path| [PRELOAD_START, path.as_str(), PRELOAD_END])
        .collect();
    PAGE.replace(PRELOADS_PLACE, &preloads)
        .replace(VERSION_PLACE, version())
        .replace(PLOTS_PLACE, &plots().version)
});

/// Paths of the modules that an asset imports statically.
fn imports(asset: &Asset) -> Vec<String> {
    let text = std::str::from_utf8(asset.bytes).unwrap_or_default();
    let directory = asset
        .path
        .rsplit_once('/')
        .map_or("", |(directory, _)| directory);
    let lines = text
        .lines()
        .filter(|line| line.starts_with("import ") && line.contains(" from "));
    let names = lines.filter_map(|line| line.split('"').nth(1));
    let paths = names.map(|name| match name.strip_prefix("../") {
        Some(above) => above.to_owned(),
        None if directory.is_empty() => name.trim_start_matches("./").to_owned(),
        None => format!("{directory}/{}", name.trim_start_matches("./")),
    });
    paths.collect()
}

/// [`FIRST_MODULES`] and all that they import, each once.
fn first_modules() -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<String> = FIRST_MODULES.map(str::to_owned).to_vec();
    while let Some(path) = open.pop() {
        if found.contains(&path) {
            continue;
        }
        if let Some(asset) = ASSETS.iter().find(|asset| asset.path == path) {
            open.extend(imports(asset));
        }
        found.push(path);
    }
    found
}

/// The first bytes of a hash in hexadecimal digits.
fn shortened(digest: &[u8]) -> String {
    let mut digits = base16ct::lower::encode_string(digest);
    digits.truncate(2 * VERSION_BYTES);
    digits
}

/// Version of the files, a hash of their content: browsers may keep what they have of it for ever.
#[must_use]
pub fn version() -> &'static str {
    &VERSION
}

/// The page, which names its version's files.
#[must_use]
pub fn page() -> &'static str {
    &RENDERED
}

/// Files, compressed once.
static PACKED: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let sent = |asset: &Asset| match std::str::from_utf8(asset.bytes) {
        Ok(script) if asset.content_type == SCRIPT => packed(without_comments(script).as_bytes()),
        _ => packed(asset.bytes),
    };
    ASSETS.iter().map(sent).collect()
});

/// A script with empty lines in place of those that hold comments alone, which are a fifth of its compressed size.
/// The lines stay, as errors in a browser name their numbers.
fn without_comments(script: &str) -> String {
    let mut is_within = false;
    let mut sent = String::with_capacity(script.len());
    for line in script.lines() {
        let text = line.trim();
        // A comment with a type may stand before code, on the same line.
        let is_end = text.ends_with("*/") && text.matches("*/").count() == 1;
        let is_start = text.starts_with("/*") && (is_end || !text.contains("*/"));
        if !(is_within || is_start || text.starts_with("//")) {
            sent.push_str(line);
        }
        is_within = (is_within || is_start) && !is_end;
        sent.push('\n');
    }
    sent
}

/// The bytes in the format gzip; empty if they cannot be compressed, which memory alone can prevent.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// The file of that path of the present version, in the format gzip.
#[must_use]
pub fn packed_asset(of_version: &str, path: &str) -> Option<&'static [u8]> {
    let is_present = of_version == version();
    let index = ASSETS.iter().position(|asset| asset.path == path)?;
    let bytes = PACKED.get(index).filter(|bytes| !bytes.is_empty())?;
    is_present.then_some(bytes)
}

/// The file of that path of the present version.
#[must_use]
pub fn asset(of_version: &str, path: &str) -> Option<Asset> {
    if of_version != version() {
        return None;
    }
    ASSETS.iter().find(|asset| asset.path == path).copied()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn files_are_found_below_the_present_version_only() {
        assert_eq!(version().len(), 2 * VERSION_BYTES);
        assert!(asset(version(), "app.js").is_some());
        assert!(asset(version(), "pages/tables.js").is_some());
        assert!(asset(version(), "../src/lib.rs").is_none());
        assert!(asset(version(), "").is_none());
        assert!(asset("0000000000000000", "app.js").is_none());
    }

    #[test]
    fn the_page_names_files_that_are_there_and_runs_no_script_of_its_own() {
        for place in [VERSION_PLACE, PLOTS_PLACE, PRELOADS_PLACE] {
            assert!(!page().contains(place), "{place}");
        }
        assert!(page().contains(&format!("{}/{}", plots().version, Plots::PATH)));
        let prefix = format!("console/{}/", version());
        let mut named = 0;
        for part in page()
            .split('"')
            .filter(|part| part.starts_with("console/"))
        {
            let path = part.strip_prefix(&prefix).unwrap_or_default();
            assert!(asset(version(), path).is_some(), "{part}");
            named += 1;
        }
        assert_eq!(named, 4 + first_modules().len());
        assert!(!page().contains("<style") && !page().contains("style="));
        assert!(!page().contains("<script>") && !page().contains("onclick"));
    }

    #[test]
    fn every_file_is_served_and_every_import_is_a_file() {
        fn below(directory: &Path, root: &Path, found: &mut BTreeSet<String>) {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    below(&path, root, found);
                } else {
                    let path = path.strip_prefix(root).unwrap();
                    found.insert(path.to_str().unwrap().to_owned());
                }
            }
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let mut found = BTreeSet::new();
        below(&root, &root, &mut found);
        found.remove("index.html");
        let served: BTreeSet<String> = ASSETS.iter().map(|asset| asset.path.to_owned()).collect();
        assert_eq!(served, found);
        for asset in ASSETS.iter().filter(|asset| asset.content_type == SCRIPT) {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            for line in text
                .lines()
                .filter(|line| line.starts_with("import ") && line.contains(" from "))
            {
                let name = line.split('"').nth(1).unwrap();
                let directory = Path::new(asset.path).parent().unwrap();
                let target = root.join(directory).join(name);
                assert!(target.exists(), "{}: {name}", asset.path);
            }
            for name in text.split("import(\"").skip(1) {
                let name = name.split('"').next().unwrap();
                let directory = Path::new(asset.path).parent().unwrap();
                assert!(
                    root.join(directory).join(name).exists(),
                    "{}: {name}",
                    asset.path
                );
            }
        }
    }

    #[test]
    fn the_first_page_needs_few_modules_and_none_of_the_other_pages() {
        let first = first_modules();
        assert!(first.len() <= 18, "{first:?}");
        let pages = first.iter().filter(|path| path.starts_with("pages/"));
        let mut pages: Vec<&String> = pages.collect();
        pages.sort_unstable();
        assert_eq!(pages, ["pages/home.js", "pages/sign_in.js"]);
    }

    #[test]
    fn scripts_are_sent_without_comments_and_with_all_their_lines() {
        let script = "// One.\n\n/**\n * Two.\n */\nf(/** @type {any} */ (x));\n  /** Three. */\n/** @type {A} */ (y).z(); // four\n";
        let sent = "\n\n\n\n\nf(/** @type {any} */ (x));\n\n/** @type {A} */ (y).z(); // four\n";
        assert_eq!(without_comments(script), sent);
    }

    #[test]
    fn all_files_together_are_sent_in_160_kilobytes() {
        let packed: usize = ASSETS
            .iter()
            .map(|asset| packed_asset(version(), asset.path).unwrap().len())
            .sum();
        assert!(packed <= 160_000, "{packed}");
        assert_eq!(packed_asset(version(), "nothing.js"), None);
        assert_eq!(packed_asset("0000000000000000", "app.js"), None);
    }

    #[test]
    fn text_never_becomes_markup() {
        for asset in ASSETS.iter().filter(|asset| asset.content_type == SCRIPT) {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            for way in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
            ] {
                assert!(!text.contains(way), "{} uses {way}", asset.path);
            }
        }
    }
}
