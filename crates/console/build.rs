//! Takes plotly.js out of the crate that carries it and compresses it, so that the program holds it once and
//! without the rest of that crate.

use std::{env, error::Error, fs::File, io::Write as _, path::Path};

use flate2::{Compression, write::GzEncoder};
use plotly::Plot;

const SCRIPT_START: &str = "<script type=\"text/javascript\">";
const SCRIPT_END: &str = "</script>";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let sources = Plot::offline_js_sources();
    // The first script is plotly.js, the second one MathJax, which needs more than the pages' policy allows.
    let script = sources
        .split_once(SCRIPT_START)
        .and_then(|(_, rest)| rest.split_once(SCRIPT_END))
        .map(|(script, _)| script)
        .filter(|script| script.trim_start().starts_with("/**\n* plotly.js v"))
        .ok_or("the first script of the crate plotly is not plotly.js")?;
    let directory = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let file = File::create(Path::new(&directory).join("plotly.min.js.gz"))?;
    let mut packed = GzEncoder::new(file, Compression::best());
    packed.write_all(script.as_bytes())?;
    packed.finish()?;
    Ok(())
}
