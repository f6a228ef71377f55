//! Detection of native executables, which the platform refuses.
//!
//! General detectors misfire on CSV files that begin with `MZ,` or `BC,` and on Java classes (notes
//! on storage), so this module has its own rule. Scripts, WebAssembly, Java and DEX are not native.

use std::ops::Range;

/// Number of bytes at the start of a file that the rule needs.
pub const HEAD_BYTES: usize = 64;

/// Result of an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The file is no native executable.
    Harmless,
    /// The file is a native executable of that format.
    Native(&'static str),
    /// A second part of the file decides: read this range (cut at the file's end) and pass it to
    /// [`inspect_range`].
    ReadMore(Range<u64>),
}

/// Inspects the start of a file: its first [`HEAD_BYTES`], or the whole file if it is shorter.
#[must_use]
pub fn inspect_head(head: &[u8], file_size: u64) -> Verdict {
    match head.first_chunk::<4>() {
        Some([0x7f, b'E', b'L', b'F']) => Verdict::Native("ELF"),
        Some([0xfe, 0xed, 0xfa, 0xce | 0xcf]) => mach_o(big_u32(head, 12)),
        Some([0xce | 0xcf, 0xfa, 0xed, 0xfe]) => mach_o(little_u32(head, 12)),
        // Number of architectures; in a Java class, which starts with the same bytes, the class
        // version.
        Some([0xca, 0xfe, 0xba, 0xbe | 0xbf]) => {
            if matches!(big_u32(head, 4), Some(1..=30)) {
                Verdict::Native("Mach-O")
            } else {
                Verdict::Harmless
            }
        }
        // DOS also loads programs that begin with `ZM`.
        Some([b'M', b'Z', ..] | [b'Z', b'M', ..]) => dos(head, file_size),
        _ => Verdict::Harmless,
    }
}

/// Inspects the range that [`inspect_head`] asked for.
#[must_use]
pub fn inspect_range(head: &[u8], file_size: u64, more: &[u8]) -> Verdict {
    match more {
        [b'P', b'E', 0, 0, ..] => Verdict::Native("PE"),
        [b'N', b'E', ..] => Verdict::Native("NE"),
        [b'L', b'E' | b'X', ..] => Verdict::Native("LE"),
        _ => plain_dos(head, file_size),
    }
}

fn mach_o(file_type: Option<u32>) -> Verdict {
    // Four bytes alone also occur in data; a known type makes a false alarm improbable.
    if matches!(file_type, Some(1..=12)) {
        Verdict::Native("Mach-O")
    } else {
        Verdict::Harmless
    }
}

fn dos(head: &[u8], file_size: u64) -> Verdict {
    match little_u32(head, 60).map(u64::from) {
        // `e_lfanew` may point anywhere in the file, so the header is a second read.
        Some(start) if start > 0 && start < file_size => Verdict::ReadMore(start..start + 4),
        _ => plain_dos(head, file_size),
    }
}

/// Inspects an `MZ` file without a newer header, which is a program only if its fields are consistent: the pages
/// fit into the file, the header lies within them, the memory bounds are in order, and the
/// relocations lie within the header.
fn plain_dos(head: &[u8], file_size: u64) -> Verdict {
    let field = |at: usize| {
        let bytes = head.get(at..)?.first_chunk::<2>()?;
        Some(u64::from(u16::from_le_bytes(*bytes)))
    };
    // Texts may begin with `MZ`, so every field of the header has to fit.
    let consistent = || {
        let (last_page, pages) = (field(2)?, field(4)?);
        let (relocations, header) = (field(6)?, field(8)? * 16);
        let (minimum, maximum) = (field(10)?, field(12)?);
        let relocation_table = field(24)?;
        // The header counts whole pages, and how much of the last one is used.
        let image = (pages * 512).checked_sub(if last_page == 0 {
            0
        } else {
            512 - last_page.min(512)
        })?;
        Some(
            last_page < 512
                && image <= file_size
                && header >= 28
                && header < image
                && minimum <= maximum
                && (relocations == 0 || relocation_table + relocations * 4 <= header),
        )
    };
    if consistent() == Some(true) {
        Verdict::Native("DOS")
    } else {
        Verdict::Harmless
    }
}

fn big_u32(head: &[u8], at: usize) -> Option<u32> {
    head.get(at..)?
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
}

fn little_u32(head: &[u8], at: usize) -> Option<u32> {
    head.get(at..)?
        .first_chunk()
        .map(|bytes| u32::from_le_bytes(*bytes))
}

/// Inspects a whole file in memory.
#[must_use]
pub fn inspect_file(file: &[u8]) -> Verdict {
    let size = u64::try_from(file.len()).unwrap_or(u64::MAX);
    let head = file.get(..HEAD_BYTES).unwrap_or(file);
    match inspect_head(head, size) {
        Verdict::ReadMore(range) => {
            let start = usize::try_from(range.start).unwrap_or(usize::MAX);
            let more = file.get(start..).unwrap_or_default();
            inspect_range(head, size, more.get(..4).unwrap_or(more))
        }
        verdict => verdict,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with(size: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut file = vec![0; size];
        for (at, bytes) in parts {
            file[*at..*at + bytes.len()].copy_from_slice(bytes);
        }
        file
    }

    #[test]
    fn native_executables_are_found() {
        let dos = with(
            1024,
            &[(0, b"MZ"), (2, &[0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 0xff, 0xff])],
        );
        let cases = [
            ("ELF", with(64, &[(0, b"\x7fELF\x02\x01\x01")])),
            (
                "Mach-O",
                with(32, &[(0, &[0xcf, 0xfa, 0xed, 0xfe]), (12, &[2, 0, 0, 0])]),
            ),
            (
                "Mach-O",
                with(32, &[(0, &[0xfe, 0xed, 0xfa, 0xce]), (12, &[0, 0, 0, 6])]),
            ),
            (
                "Mach-O",
                with(32, &[(0, &[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 2])]),
            ),
            (
                "PE",
                with(512, &[(0, b"MZ"), (60, &[0x80]), (0x80, b"PE\0\0")]),
            ),
            (
                "PE",
                with(70_000, &[(0, b"MZ"), (60, &[0, 0, 1]), (65_536, b"PE\0\0")]),
            ),
            ("NE", with(512, &[(0, b"MZ"), (60, &[0x80]), (0x80, b"NE")])),
            ("LE", with(512, &[(0, b"ZM"), (60, &[0x80]), (0x80, b"LX")])),
            ("DOS", dos),
        ];
        for (format, file) in cases {
            assert_eq!(inspect_file(&file), Verdict::Native(format));
        }
    }

    #[test]
    fn files_that_only_resemble_one_are_harmless() {
        let long_csv = format!("MZ,intensity\n{}", "100.5,3\n".repeat(1000)).into_bytes();
        let cases: [&[u8]; 10] = [
            b"",
            b"MZ",
            b"MZ,intensity,charge\n100.5,3,1\n100.6,4,2\n100.7,5,1\n100.8,6,2\n101.0,7,1\n",
            &long_csv,
            b"BC,plate\n",
            b"#!/bin/sh\nrm -rf /\n",
            b"\0asm\x01\0\0\0",
            // A Java class of version 52 and one of an ancient minor version.
            &[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 52],
            &[0xca, 0xfe, 0xba, 0xbe, 0, 3, 0, 45],
            b"dex\n035\0",
        ];
        for file in cases {
            assert_eq!(
                inspect_file(file),
                Verdict::Harmless,
                "{}",
                String::from_utf8_lossy(file)
            );
        }
    }

    #[test]
    fn the_second_read_is_asked_for_wherever_the_header_points() {
        let head = with(64, &[(0, b"MZ"), (60, &[0, 0, 0, 0x10])]);
        assert_eq!(
            inspect_head(&head, 500_000_000),
            Verdict::ReadMore(0x1000_0000..0x1000_0004)
        );
        assert_eq!(
            inspect_head(&head, 1000),
            Verdict::Harmless,
            "it points behind the end"
        );
    }

    /// A DOS program of 528 bytes: a header of 64 bytes with two relocations at byte 28.
    struct DosHeader {
        last_page: u16,
        pages: u16,
        relocations: u16,
        paragraphs: u16,
        minimum: u16,
        maximum: u16,
        relocation_table: u16,
        file_size: u64,
    }

    const DOS: DosHeader = DosHeader {
        last_page: 16,
        pages: 2,
        relocations: 2,
        paragraphs: 4,
        minimum: 0,
        maximum: 0xffff,
        relocation_table: 28,
        file_size: 528,
    };

    impl DosHeader {
        fn verdict(&self) -> Verdict {
            let mut head = with(64, &[(0, b"MZ")]);
            for (at, field) in [
                (2, self.last_page),
                (4, self.pages),
                (6, self.relocations),
                (8, self.paragraphs),
                (10, self.minimum),
                (12, self.maximum),
                (24, self.relocation_table),
            ] {
                head[at..at + 2].copy_from_slice(&field.to_le_bytes());
            }
            inspect_head(&head, self.file_size)
        }
    }

    #[test]
    fn a_dos_program_is_found_when_its_header_agrees_with_the_file() {
        let programs = [
            DOS,
            DosHeader {
                file_size: 529,
                ..DOS
            },
            DosHeader {
                minimum: 0xffff,
                ..DOS
            },
            // The relocations end where the header ends.
            DosHeader {
                relocations: 9,
                ..DOS
            },
            // Without relocations it does not matter where their table would be.
            DosHeader {
                relocations: 0,
                relocation_table: 0xffff,
                ..DOS
            },
        ];
        for program in programs {
            assert_eq!(program.verdict(), Verdict::Native("DOS"));
        }
    }

    #[test]
    fn an_mz_file_whose_header_contradicts_itself_or_the_file_is_harmless() {
        let others = [
            // A file shorter than its pages.
            DosHeader {
                file_size: 527,
                ..DOS
            },
            // A last page longer than a page.
            DosHeader {
                last_page: 512,
                pages: 1,
                ..DOS
            },
            // A header that is too short, or as long as the image.
            DosHeader {
                paragraphs: 1,
                relocations: 0,
                ..DOS
            },
            DosHeader {
                paragraphs: 33,
                ..DOS
            },
            DosHeader {
                minimum: 2,
                maximum: 1,
                ..DOS
            },
            // Relocations that end behind the header.
            DosHeader {
                relocations: 10,
                ..DOS
            },
        ];
        for other in others {
            assert_eq!(other.verdict(), Verdict::Harmless);
        }
    }

    #[test]
    fn a_header_that_points_at_the_end_of_the_file_needs_no_second_read() {
        let head = with(64, &[(0, b"MZ"), (60, &[0xe8, 0x03])]);
        assert_eq!(inspect_head(&head, 1000), Verdict::Harmless);
        assert_eq!(inspect_head(&head, 1001), Verdict::ReadMore(1000..1004));
    }

    proptest! {
        #[test]
        fn no_printable_text_is_taken_for_an_executable(rest in "[ -~\n]{0,400}", start in "MZ|ZM|BC|") {
            prop_assert_eq!(inspect_file(format!("{start}{rest}").as_bytes()), Verdict::Harmless);
        }

        #[test]
        fn any_bytes_are_judged_without_a_panic(file in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut file = file;
            let _ = inspect_file(&file);
            if file.len() > 1 {
                file[0] = b'M';
                file[1] = b'Z';
            }
            let _ = inspect_file(&file);
        }
    }
}
