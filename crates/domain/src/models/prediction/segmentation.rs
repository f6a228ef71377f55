//! Predictions of segmentation models: thresholds, and the masks that they give.

use crate::{
    instruments::images::PixelSize,
    refusal::{ErrorCode, Refuse},
};

/// Turns probabilities of pixels into masks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentationOptions {
    /// Probability from which a pixel belongs to the mask, 0 to 1.
    pub pixel_threshold: f64,
    /// Connected regions with fewer pixels are left out.
    pub min_region_pixels: u32,
    /// Holes of at most that many pixels are filled; all of them for `None`.
    pub max_hole_pixels: Option<u32>,
    /// Masks whose mean probability is lower are left out, 0 to 1.
    pub min_confidence: f64,
}

impl Default for SegmentationOptions {
    fn default() -> Self {
        Self {
            pixel_threshold: 0.5,
            min_region_pixels: 0,
            max_hole_pixels: None,
            min_confidence: 0.0,
        }
    }
}

/// Error: thresholds of pixels were given for a model that predicts none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "pixel_threshold, min_region_pixels, max_hole_pixels and min_confidence are for models of segmentation, \
     and this is none"
)]
pub struct NotASegmentation;

impl Refuse for NotASegmentation {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidPrediction
    }
}

/// Mask that a model predicts.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedMask {
    /// Number of the class, where the model knows several.
    pub class: Option<u32>,
    /// PNG in base64, white on transparent.
    pub mask: String,
    /// Size of the image.
    pub size: PixelSize,
    /// Share of the image that it covers.
    pub foreground_fraction: f64,
    /// Mean probability of its pixels.
    pub confidence: f64,
}

impl PredictedMask {
    /// True if it can be one.
    pub(super) fn is_usable(&self) -> bool {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        !self.mask.is_empty()
            && self.size.pixels() > 0
            && is_share(self.foreground_fraction)
            && is_share(self.confidence)
    }
}
