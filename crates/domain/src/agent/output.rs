//! Outputs of tools, and how much of them is stored.

use super::{
    AgentLimits, Attachment, MAX_ATTACHMENT_BYTES, MAX_ATTACHMENTS,
    text::{start, storable},
};

/// Output of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// The output, as JSON where the tool has a result: its start, if it is long.
    pub text: String,
    /// Number of bytes of the whole output.
    pub bytes: u64,
    /// True if the call failed; the output says why.
    pub is_error: bool,
    /// Figures, for people. The text names them.
    pub attachments: Vec<Attachment>,
}

/// Output of a call during which the run was cancelled.
pub const CANCELLED_CALL: &str =
    "the run was cancelled during this call; if it writes, it wrote everything or nothing";

/// Output of a call during which the time of its run ended.
pub const CALL_OUT_OF_TIME: &str =
    "the time of the run ended during this call; if it writes, it wrote everything or nothing";

/// Refusal of a tool that changes data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} changes data, which the API key of this run does not allow: it lacks the write scope")]
pub struct WriteNotAllowed(pub String);

impl ToolOutput {
    /// A result.
    #[must_use]
    pub fn result(text: String) -> Self {
        Self::new(text, false)
    }

    /// An error that the model reads.
    #[must_use]
    pub fn error(text: String) -> Self {
        Self::new(text, true)
    }

    fn new(text: String, is_error: bool) -> Self {
        // PostgreSQL stores no NUL; most texts have none and are not copied.
        let text = if text.contains('\0') {
            storable(&text)
        } else {
            text
        };
        Self {
            bytes: length(&text),
            text,
            is_error,
            attachments: Vec::new(),
        }
    }

    /// The output with these attachments, as far as the limits permit them; the tool retains within
    /// [`MAX_ATTACHMENTS`] and [`MAX_ATTACHMENT_BYTES`] and says what it leaves out.
    #[must_use]
    pub fn with_attachments(mut self, attachments: Vec<Attachment>) -> Self {
        let most = u64::try_from(MAX_ATTACHMENT_BYTES).unwrap_or(u64::MAX);
        // Python reports what it left out; this bound also holds for forged output.
        let small = attachments.into_iter().filter(|file| file.size <= most);
        self.attachments = small.take(MAX_ATTACHMENTS).collect();
        self
    }

    /// The output, if its attachments fit into the bytes that are left of
    /// [`AgentLimits::attachment_bytes`]; otherwise an error that says so. Takes their bytes.
    #[must_use]
    pub fn within(self, bytes_left: &mut u64) -> Self {
        let size = self.attachments.iter().map(|file| file.size).sum();
        if let Some(left) = bytes_left.checked_sub(size) {
            *bytes_left = left;
            return self;
        }
        let kib = |bytes: u64| bytes.div_ceil(1024);
        Self::error(format!(
            "the figures of this call have {} KiB, and {} KiB are left for all figures of this run: make \
             smaller or fewer figures",
            kib(size),
            kib(*bytes_left)
        ))
    }

    /// The output with no more text than is stored.
    #[must_use]
    pub fn stored(mut self, limits: &AgentLimits) -> Self {
        let end = start(&self.text, limits.output_bytes).len();
        self.text.truncate(end);
        // The rest of a large output would stay allocated for as long as the run.
        self.text.shrink_to_fit();
        self
    }

    /// True if the model gets less than all of it.
    #[must_use]
    pub fn is_truncated(&self, limits: &AgentLimits) -> bool {
        self.bytes > length(start(&self.text, limits.model_output_bytes))
    }

    /// The text for the model: its start, and a note of how much is missing.
    #[must_use]
    pub fn for_model(&self, limits: &AgentLimits) -> String {
        let start = start(&self.text, limits.model_output_bytes);
        let displayed = length(start);
        // `bytes` is the size of the whole output; the stored text may already be shorter.
        if displayed >= self.bytes {
            return start.to_owned();
        }
        format!(
            "{start}\n[The output is cut off: {displayed} of {} bytes are given, {} are missing. Ask for less: \
             fewer rows or columns, a filter, or an aggregate.]",
            self.bytes,
            self.bytes - displayed
        )
    }
}

fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::AttachmentType, *};

    const LIMITS: AgentLimits = AgentLimits {
        steps: 1,
        tool_calls: 1,
        duration: time::Duration::MINUTE,
        output_bytes: 20,
        model_output_bytes: 10,
        attachment_bytes: 100,
        runs_per_organization: 1,
        monthly_tokens: None,
    };

    #[test]
    fn a_short_output_is_shown_as_it_is() {
        let output = ToolOutput::result("0123456789".to_owned()).stored(&LIMITS);
        assert_eq!(output.for_model(&LIMITS), "0123456789");
        assert!(!output.is_truncated(&LIMITS));
    }

    #[test]
    fn a_long_output_says_how_much_is_missing() {
        let output = ToolOutput::result("ä".repeat(50)).stored(&LIMITS);
        assert_eq!((output.text.len(), output.bytes), (20, 100));
        assert!(output.is_truncated(&LIMITS));
        assert_eq!(
            output.for_model(&LIMITS),
            "äääää\n[The output is cut off: 10 of 100 bytes are given, 90 are missing. Ask for less: \
             fewer rows or columns, a filter, or an aggregate.]"
        );
    }

    fn figure(bytes: usize) -> Attachment {
        let id = crate::ids::ChatFileId::new(uuid::Uuid::nil());
        Attachment::new(id, "figure", AttachmentType::Png, vec![0; bytes])
    }

    #[test]
    fn attachments_are_bounded_in_number_and_size() {
        let output = ToolOutput::result(String::new());
        let output = output.with_attachments(vec![figure(MAX_ATTACHMENT_BYTES + 1), figure(1)]);
        assert_eq!(output.attachments, [figure(1)]);
        let many = output.with_attachments(vec![figure(1); MAX_ATTACHMENTS + 1]);
        assert_eq!(many.attachments.len(), MAX_ATTACHMENTS);
    }

    #[test]
    fn the_attachments_of_a_run_are_bounded_together() {
        let output = ToolOutput::result("ok".to_owned()).with_attachments(vec![figure(2048); 2]);
        let mut left = 6000;
        assert_eq!(output.clone().within(&mut left), output);
        assert_eq!(left, 1904);
        let refused = output.within(&mut left);
        assert!(refused.is_error && refused.attachments.is_empty());
        assert_eq!(
            refused.text,
            "the figures of this call have 4 KiB, and 2 KiB are left for all figures of this run: make \
             smaller or fewer figures"
        );
        assert_eq!(left, 1904);
    }

    proptest! {
        #[test]
        fn any_output_is_cut_at_a_character(text in "\\PC*", output_bytes in 0_usize..64, model_bytes in 0_usize..64) {
            let limits = AgentLimits { output_bytes, model_output_bytes: model_bytes, ..LIMITS };
            let output = ToolOutput::result(text.clone()).stored(&limits);
            prop_assert!(output.text.len() <= output_bytes);
            prop_assert!(text.starts_with(&output.text));
            let displayed = output.for_model(&limits);
            prop_assert_eq!(output.is_truncated(&limits), displayed != text);
            prop_assert!(displayed.len() <= model_bytes + 200);
            prop_assert_eq!(output.clone().stored(&limits), output);
        }
    }
}
