//! Responses of the process of a snippet, read as untrusted bytes.

use std::io;

use labdata_domain::agent::{
    AgentLimits, AttachmentType, MAX_ATTACHMENT_BYTES, MAX_ATTACHMENTS, PythonFigure, PythonOutput,
    SHOWN_OUTPUT_PART,
};
use labdata_sandbox::frames;
use serde::Deserialize;
use tokio::io::AsyncRead;

/// Maximum length of a frame: a figure with its name.
const MAX_FRAME: usize = MAX_ATTACHMENT_BYTES + 1024;

/// Maximum number of frames. Each line of the displayed output may be one.
const MAX_FRAMES: usize = 2 * SHOWN_OUTPUT_PART;

/// Maximum number of reasons for missing figures.
const MAX_REASONS: usize = 10;

/// Maximum number of characters of a reason.
const MAX_REASON: usize = 300;

/// Error: a process sent what the program in it does not send.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokenReport {
    /// The output ended or could not be read.
    #[error("the output ended early: {0}")]
    Ended(#[from] io::Error),
    /// A frame is none of the protocol, or one too many.
    #[error("it broke the protocol: {0}")]
    Protocol(&'static str),
}

/// Report of a process so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Start of its standard output.
    pub(crate) output: Vec<u8>,
    /// Its figures.
    pub(crate) figures: Vec<PythonFigure>,
    /// Its end, if it reported one.
    pub(crate) end: Option<End>,
}

/// End of a snippet as it reports it.
#[derive(Debug, Deserialize)]
pub(crate) struct End {
    /// Text of the value of the last expression.
    pub(crate) value: Option<String>,
    /// Traceback, if it raised an exception.
    pub(crate) error: Option<String>,
    /// True if the exception is a lack of memory.
    pub(crate) is_memory: bool,
    /// End of its standard output.
    tail: String,
    /// Length of its standard output, in bytes.
    output_bytes: u64,
    omitted_figures: Vec<String>,
}

impl Report {
    /// Reads responses up to the end of the snippet.
    ///
    /// # Errors
    /// [`BrokenReport`]; what was read before stays.
    pub(crate) async fn read(
        &mut self,
        input: &mut (impl AsyncRead + Unpin),
    ) -> Result<(), BrokenReport> {
        // Tiny frames without end would never reach the limits of size.
        for _ in 0..MAX_FRAMES {
            let frame = frames::read(input, MAX_FRAME).await?;
            let (kind, body) = frame
                .split_first()
                .ok_or(BrokenReport::Protocol("an empty frame"))?;
            match kind {
                b'o' => self.add_output(body)?,
                b'p' => self.add_figure(AttachmentType::Png, body)?,
                b'j' => self.add_figure(AttachmentType::Plotly, body)?,
                b'e' => {
                    let end = serde_json::from_slice(body);
                    self.end = Some(end.map_err(|_| BrokenReport::Protocol("a malformed end"))?);
                    return Ok(());
                }
                _ => return Err(BrokenReport::Protocol("an unknown frame")),
            }
        }
        Err(BrokenReport::Protocol("too many frames"))
    }

    fn add_output(&mut self, body: &[u8]) -> Result<(), BrokenReport> {
        // The program cuts the output itself, so more comes from a snippet that writes to the pipe.
        if self.output.len() + body.len() > SHOWN_OUTPUT_PART {
            return Err(BrokenReport::Protocol("too much output"));
        }
        self.output.extend_from_slice(body);
        Ok(())
    }

    fn add_figure(&mut self, kind: AttachmentType, body: &[u8]) -> Result<(), BrokenReport> {
        let mut parts = body.splitn(2, |byte| *byte == b'\n');
        let (Some(name), Some(content)) = (parts.next(), parts.next()) else {
            return Err(BrokenReport::Protocol("a figure without a name"));
        };
        let figure = PythonFigure {
            name: String::from_utf8_lossy(name).into_owned(),
            kind,
            content: content.to_vec(),
        };
        let sizes = self.figures.iter().map(|figure| figure.content.len());
        let total = u64::try_from(sizes.sum::<usize>() + content.len()).unwrap_or(u64::MAX);
        if self.figures.len() >= MAX_ATTACHMENTS
            || content.len() > MAX_ATTACHMENT_BYTES
            || total > AgentLimits::default().attachment_bytes
        {
            return Err(BrokenReport::Protocol("too many or too large figures"));
        }
        // Browsers display it, so its bytes have to be of the declared type.
        if !figure.is_valid() {
            return Err(BrokenReport::Protocol("a figure of another type"));
        }
        self.figures.push(figure);
        Ok(())
    }

    /// Returns the standard output as far as it is displayed.
    pub(crate) fn output(&self) -> PythonOutput {
        let start = String::from_utf8_lossy(&self.output).into_owned();
        let Some(end) = &self.end else {
            return PythonOutput {
                start,
                ..PythonOutput::default()
            };
        };
        let displayed = self.output.len() + end.tail.len();
        PythonOutput {
            start,
            end: end.tail.clone(),
            // Saturating, because the snippet can claim any number.
            omitted: end
                .output_bytes
                .saturating_sub(u64::try_from(displayed).unwrap_or(u64::MAX)),
        }
    }

    /// Returns the reasons for which figures are missing.
    pub(crate) fn omitted_figures(&self) -> Vec<String> {
        let reasons = self.end.iter().flat_map(|end| &end.omitted_figures);
        reasons
            .take(MAX_REASONS)
            .map(|reason| reason.chars().take(MAX_REASON).collect())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(frames_sent: &[&[u8]]) -> (Report, Result<(), BrokenReport>) {
        let mut bytes = Vec::new();
        for frame in frames_sent {
            frames::write(&mut bytes, frame).await.unwrap();
        }
        let mut report = Report::default();
        let read = report.read(&mut &*bytes).await;
        (report, read)
    }

    const END: &[u8] =
        b"e{\"value\": null, \"error\": null, \"is_memory\": false, \"tail\": \"z\", \
        \"output_bytes\": 12, \"omitted_figures\": []}";

    #[tokio::test]
    async fn a_report_is_read_to_its_end() {
        let png: &[u8] = b"pFigure 1\n\x89PNG\r\n\x1a\n...";
        let plotly: &[u8] = b"jCurve\n{\"data\": [], \"layout\": {}}";
        let (report, read) = read(&[b"oab", png, plotly, b"oc", END, b"?"]).await;
        read.unwrap();
        let names: Vec<&str> = report
            .figures
            .iter()
            .map(|figure| figure.name.as_str())
            .collect();
        assert_eq!(names, ["Figure 1", "Curve"]);
        let output = PythonOutput {
            start: "abc".to_owned(),
            end: "z".to_owned(),
            omitted: 8,
        };
        assert_eq!(report.output(), output);
    }

    #[tokio::test]
    async fn what_was_read_before_an_early_end_stays() {
        let (report, read) = read(&[b"oab"]).await;
        assert!(matches!(read, Err(BrokenReport::Ended(_))));
        assert_eq!(report.output().start, "ab");
    }

    #[tokio::test]
    async fn forged_answers_are_refused() {
        let long = vec![b'o'; SHOWN_OUTPUT_PART + 2];
        let large = vec![b'p'; MAX_FRAME + 1];
        let forged: [&[u8]; 7] = [
            b"",
            b"x",
            b"e{}",
            b"pno name",
            b"pFigure\n<svg onload=alert(1)>",
            &long,
            &large,
        ];
        for frame in forged {
            let (_, read) = read(&[frame, END]).await;
            assert!(read.is_err(), "{:?}", frame.first());
        }
        let png: &[u8] = b"pFigure 1\n\x89PNG\r\n\x1a\n";
        let many = vec![png; MAX_ATTACHMENTS + 1];
        assert!(read(&many).await.1.is_err());
        let lines: Vec<&[u8]> = vec![b"o"; MAX_FRAMES + 1];
        assert!(read(&lines).await.1.is_err());
    }
}
