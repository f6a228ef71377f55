//! plotly.js, which draws the plots. The crate `plotly` carries it, and `build.rs` takes it from there.

use std::{
    io::{self, Read as _},
    sync::LazyLock,
};

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

/// plotly.js, which only pages with plots load.
#[derive(Debug)]
pub struct Plots {
    /// A hash of its content. It differs from that of the console's own files: most releases of the console keep
    /// plotly.js as it was, and so do browsers.
    pub version: String,
}

/// Not a constant, of which each crate that uses it would hold a copy.
static GZIP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plotly.min.js.gz"));

static PLOTS: LazyLock<Plots> = LazyLock::new(|| Plots {
    version: crate::shortened(&Sha256::digest(GZIP)),
});

/// plotly.js of this build.
#[must_use]
pub fn plots() -> &'static Plots {
    &PLOTS
}

impl Plots {
    /// Its path below its version.
    pub const PATH: &str = "plotly.min.js";

    /// Its media type.
    pub const CONTENT_TYPE: &str = crate::SCRIPT;

    /// Its content, compressed with gzip.
    #[must_use]
    pub fn gzip(&self) -> &'static [u8] {
        GZIP
    }

    /// Its content, for the rare client that accepts no gzip.
    ///
    /// # Errors
    /// None in a program that was built whole.
    pub fn unpacked(&self) -> io::Result<Vec<u8>> {
        let mut script = Vec::new();
        GzDecoder::new(GZIP).read_to_end(&mut script)?;
        Ok(script)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plotly_js_is_one_whole_script_with_its_licence() {
        let script = String::from_utf8(plots().unpacked().unwrap()).unwrap();
        let start: String = script.chars().take(200).collect();
        assert!(start.contains("plotly.js v"), "{start}");
        assert!(start.contains("MIT license"), "{start}");
        assert!(script.trim_end().ends_with("return Plotly;\n}));"));
        assert!(GZIP.len() < 1_500_000, "{}", GZIP.len());
    }
}
