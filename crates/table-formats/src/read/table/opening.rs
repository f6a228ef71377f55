//! First reading of a table: its header, its columns, and what is doubtful about them.

use labdata_domain::{catalog::unit_besides_seconds, scalar::DataType};
use serde_json::json;

use super::{
    Layout, ReadColumn, ReadTable,
    cell_units::CellUnits,
    extent::Survey,
    head::{FoundHeader, typed_header},
    row_checker::RowChecker,
    rules,
};
use crate::read::{
    MAX_COLUMNS, ReadError,
    cell_kind::CellKind,
    date::DateFormat,
    doubt::{Doubt, RowProblem},
    head::Extent,
    header::{Header, column_names, duplicates},
    interpret::{ColumnReading, PercentContext},
    null_numbers::NullNumbers,
    number::{NumberStyle, STYLES},
    open::OpenFile,
    options::{ReadOptions, Reading},
    raw::RawRow,
    survey::{CellRules, ColumnCounts, Inferred, TypeDoubt},
    target::ImportTarget,
};

/// A table whose rows are read for the first time.
pub(super) struct Opening<'o> {
    pub(super) file: OpenFile,
    pub(super) given: &'o ReadOptions,
    pub(super) is_null_given: bool,
    pub(super) null_numbers: NullNumbers,
    pub(super) max_rows: usize,
    pub(super) extent: Extent,
    pub(super) reading: Reading,
    pub(super) doubts: Vec<Doubt>,
    pub(super) formats: Vec<DateFormat>,
}

impl<'o> Opening<'o> {
    pub(super) fn new(
        mut file: OpenFile,
        given: &'o ReadOptions,
        is_null_given: bool,
        max_rows: usize,
        extent: Extent,
    ) -> Self {
        let formats = match &given.date_format {
            Some(format) => vec![format.clone()],
            None => DateFormat::detected(),
        };
        let null_numbers = file.options.null_values.as_deref();
        let null_numbers = NullNumbers::new(null_numbers.unwrap_or_default());
        Self {
            reading: Reading {
                options: std::mem::take(&mut file.options),
                ..Reading::default()
            },
            doubts: std::mem::take(&mut file.doubts),
            file,
            given,
            is_null_given,
            null_numbers,
            max_rows,
            extent,
            formats,
        }
    }

    pub(super) fn open(mut self, target: Option<&ImportTarget>) -> Result<ReadTable, ReadError> {
        let FoundHeader {
            headers,
            mut layout,
            kinds,
        } = if let Some(typed) = &self.file.typed {
            typed_header(typed)
        } else {
            let head = self.head()?;
            self.header(&head, target)?
        };
        // Delimited lines may end in empty fields, which are no columns.
        let named = headers.iter().rposition(|header| !header.text.is_empty());
        let named = named.map_or(0, |last| last + 1);
        if named > MAX_COLUMNS {
            return Err(ReadError::TooManyColumns(named));
        }
        let texts: Vec<String> = match self.file.typed {
            Some(_) => Vec::new(),
            None => headers.iter().map(|header| header.text.clone()).collect(),
        };
        layout.has_field_counts = self.file.source.has_field_counts();
        layout.has_blank_rows = self.file.typed.is_some();
        let Survey {
            columns: counts,
            rows: row_count,
            last,
            is_cut,
            ..
        } = self.survey(layout, texts.clone(), kinds.clone())?;
        layout.last = last;
        let style = self.number_style(&counts, &headers);
        let read = self.read_columns(&headers, &counts, row_count);
        let headers = self.name_headers(headers, &read)?;
        let (columns, readings) = self.columns(&read, headers, &counts, style, target.is_some());
        self.file.source.rewind()?;
        Ok(ReadTable {
            cells: vec![None; columns.len()],
            checker: RowChecker::new(
                layout,
                self.given,
                self.reading.options.delimiter,
                kinds,
                texts,
            ),
            source: self.file.source,
            reading: self.reading,
            columns,
            doubts: self.doubts,
            sheets: self.file.sheets,
            row_count,
            extent: self.extent,
            is_cut,
            layout,
            readings,
            style,
            is_null_given: self.is_null_given,
            null_numbers: self.null_numbers,
            row: RawRow::default(),
            problems: Vec::new(),
            row_problems: Vec::new(),
        })
    }

    /// Reads all rows of a file that does not type its columns itself.
    fn survey(
        &mut self,
        layout: Layout,
        headers: Vec<String>,
        kinds: Vec<CellKind>,
    ) -> Result<Survey, ReadError> {
        let mut survey = Survey::new(self, layout, headers, kinds);
        match &self.file.typed {
            Some(typed) if typed.rows > self.max_rows => {
                return Err(ReadError::TooManyRows(self.max_rows));
            }
            Some(typed) => {
                survey.rows = typed.rows;
                // A typed file has no lines below its table.
                survey.last = Some(u64::MAX);
            }
            None => {
                survey.read(self)?;
                let last = survey.last.unwrap_or(layout.above);
                survey.is_cut |= self.file.source.is_cut();
                // Where the table ends is not known then, and sent back, it would leave rows out.
                if !survey.is_cut {
                    self.reading.options.last_row = Some(last);
                }
            }
        }
        Ok(survey)
    }

    /// Columns that are read. One without a header is a column only if it has values; so is one that
    /// another column's header is merged over.
    fn read_columns(
        &self,
        headers: &[Header],
        counts: &[ColumnCounts],
        row_count: usize,
    ) -> Vec<usize> {
        let repeated: Vec<usize> = match row_count {
            // Without rows no column has values, and a repeated header would vanish unreported.
            0 => Vec::new(),
            _ => duplicates(headers)
                .into_iter()
                .map(|(_, second)| second)
                .collect(),
        };
        (0..headers.len())
            .filter(|index| {
                let header = headers.get(*index);
                let has_header = header.is_some_and(|header| !header.text.is_empty())
                    && !repeated.contains(index);
                // The cells of a typed file are not counted.
                self.file.typed.is_some()
                    || has_header
                    || counts.get(*index).is_some_and(|counts| counts.has_content)
            })
            .collect()
    }

    /// The headers of the columns that are read, each with a text.
    fn name_headers(
        &mut self,
        mut headers: Vec<Header>,
        read: &[usize],
    ) -> Result<Vec<Header>, ReadError> {
        // Doubts so far have the indices of the file; callers know those of the columns that are read.
        for doubt in &mut self.doubts {
            for column in &mut doubt.columns {
                let position = read.iter().position(|index| index == column);
                *column = position.unwrap_or(usize::MAX);
            }
        }
        // Before columns are left out, so that the number is that of the header's field.
        for (header, number) in headers.iter_mut().zip(1..) {
            if header.text.is_empty() {
                header.text = format!("column_{number}");
            }
        }
        let mut headers: Vec<Header> = read
            .iter()
            .filter_map(|index| headers.get(*index).cloned())
            .collect();
        if headers.is_empty() {
            return Err(ReadError::NoHeader);
        }
        self.check_duplicates(&mut headers);
        Ok(headers)
    }

    /// The columns, and how their cells are read.
    fn columns(
        &mut self,
        read: &[usize],
        headers: Vec<Header>,
        counts: &[ColumnCounts],
        style: NumberStyle,
        is_import: bool,
    ) -> (Vec<ReadColumn>, Vec<Option<ColumnReading>>) {
        let names = column_names(&headers);
        let style = STYLES.iter().position(|known| *known == style).unwrap_or(0);
        let (mut columns, mut readings, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for ((index, header), name) in read.iter().zip(headers).zip(names) {
            let Some(counts) = counts.get(*index) else {
                continue;
            };
            let inferred = self.infer(*index, counts, style);
            self.column_doubts(&header, counts, inferred, style);
            let format = inferred.format.and_then(|format| self.formats.get(format));
            let detected = format.filter(|_| !is_import);
            found.extend(detected.map(|format| (header.text.clone(), format.clone())));
            let mut reading = self.reading(counts, &inferred, detected, is_import);
            let typed = self.file.typed.as_ref();
            let typed = typed.and_then(|typed| typed.columns.get(*index));
            let cells = CellUnits::new(&header, counts, typed);
            let unit = cells.unit(&header, inferred.data_type, is_import);
            // An import knows the unit of its column, and checks that.
            if cells.holds_times && !is_import && reading.is_number() {
                self.doubt_time_unit(&header, columns.len());
            }
            reading.percents = cells.percents;
            reading.unit.clone_from(&unit);
            readings.push(Some(reading));
            columns.push(ReadColumn {
                unit,
                header_unit: header.unit,
                holds_times: cells.holds_times,
                header: header.text,
                name,
                data_type: inferred.data_type,
                index: *index,
            });
        }
        if self.given.date_format.is_none() {
            self.name_date_format(&found);
        }
        (columns, readings)
    }

    /// The reading of a column's cells. An import reads no format that is only detected.
    fn reading(
        &self,
        counts: &ColumnCounts,
        inferred: &Inferred,
        detected: Option<&DateFormat>,
        is_import: bool,
    ) -> ColumnReading {
        let given = self.given.date_format.as_ref();
        ColumnReading {
            data_type: inferred.data_type,
            // The column of the table may be one of dates although the cells do not show it.
            formats: given.or(detected).cloned().into_iter().collect(),
            unread_formats: if is_import && given.is_none() {
                self.formats_of(counts)
            } else {
                Vec::new()
            },
            has_elapsed: counts.elapsed > 0,
            mixes_times: counts.mixes_times(),
            percents: PercentContext::default(),
            unit: None,
        }
    }

    /// Names the format of the dates that were found. An import reads one format only.
    fn name_date_format(&mut self, found: &[(String, DateFormat)]) {
        let Some((_, first)) = found.first() else {
            return;
        };
        let others = found.iter().filter(|(_, format)| format != first);
        let doubts: Vec<Doubt> = others
            .map(|(header, other)| {
                let message = format!(
                    "these dates are {}, and those of another column {}; an import reads one format",
                    other.as_str(),
                    first.as_str()
                );
                let options = [first, other].map(|it| json!({"date_format": it.as_str()}));
                Doubt::column(header, "date_format", message, options.into())
            })
            .collect();
        if doubts.is_empty() {
            self.reading.options.date_format = Some(first.clone());
            self.doubts.extend(found.iter().map(|(header, format)| {
                let message = format!(
                    "these dates are taken for {}; an import reads them only if the format is given",
                    format.as_str()
                );
                let option = json!({"date_format": format.as_str()});
                Doubt::column(header, "date_format", message, vec![option])
            }));
        }
        // Formats of several columns are found again; one can be named.
        self.doubts.extend(doubts);
    }

    /// The formats in which all cells of a column are dates.
    fn formats_of(&self, counts: &ColumnCounts) -> Vec<DateFormat> {
        let fitting = counts.fitting_formats().map(|(index, _)| index);
        let formats = fitting.filter_map(|index| self.formats.get(index));
        formats.cloned().collect()
    }

    fn infer(&self, index: usize, counts: &ColumnCounts, style: usize) -> Inferred {
        let has_zone = self.reading.options.timezone.is_some();
        let typed = self.file.typed.as_ref();
        match typed.and_then(|typed| typed.columns.get(index)) {
            Some(column) => Inferred {
                // Without a zone a local time is no instant and stays a text.
                data_type: if column.is_local_time && has_zone {
                    DataType::Datetime
                } else {
                    column.data_type
                },
                format: None,
                doubt: (column.is_local_time && !has_zone).then_some(TypeDoubt::NoZone),
            },
            None => counts.infer(
                style,
                has_zone,
                self.reading.options.text_numbers_are_null == Some(true),
            ),
        }
    }

    pub(super) fn encoding(&self) -> &'static str {
        self.reading
            .options
            .encoding
            .map_or("text", encoding_rs::Encoding::name)
    }

    /// Doubts times that are read as seconds below a header with another unit.
    fn doubt_time_unit(&mut self, header: &Header, column: usize) {
        let Some(unit) = unit_besides_seconds(&header.text, header.unit.as_deref()) else {
            return;
        };
        let message = format!(
            "the cells are times, which are read as values in s, but the header names {unit}; correct the header, or \
             enter the cells as numbers in {unit}"
        );
        let path = format!("columns.{}", header.text);
        let doubt = Doubt::table(&path, "time_unit", message, Vec::new());
        self.doubts.push(Doubt {
            columns: vec![column],
            ..doubt
        });
    }

    fn column_doubts(
        &mut self,
        header: &Header,
        counts: &ColumnCounts,
        inferred: Inferred,
        style: usize,
    ) {
        let is_text = inferred.data_type == DataType::Text;
        // The survey took the cell for a missing number, but the column became a text.
        if let Some(line) = counts.null_error.filter(|_| is_text && counts.filled > 0)
            && self.reading.options.error_cells_are_null == Some(false)
        {
            let row = RawRow {
                line,
                ..RawRow::default()
            };
            let problem = RowProblem::error_cell(&row, Some("#N/A"));
            self.doubts.push(Doubt::row(line, problem));
        }
        let formats = |index: usize| self.formats.get(index).map(DateFormat::as_str);
        let doubt = match inferred.doubt {
            None => return,
            Some(TypeDoubt::TextNumbers) => {
                let first = counts.first_others.get(style).cloned().flatten();
                let (line, text) = first.unwrap_or_default();
                Doubt::column(
                    &header.text,
                    "text_numbers",
                    format!(
                        "most cells are numbers, but not all: row {line} has \"{text}\"; the column \
                         is a text"
                    ),
                    vec![json!({"text_numbers": "null"})],
                )
            }
            Some(TypeDoubt::MixedTimes) => Doubt::column(
                &header.text,
                "text_numbers",
                "some cells are times, which are read as seconds, and others are plain numbers, \
                 whose unit may be another; the column is a text",
                Vec::new(),
            ),
            Some(TypeDoubt::DateFormats(first, second)) => {
                let options = [first, second].into_iter().filter_map(formats);
                Doubt::column(
                    &header.text,
                    "date_format",
                    "day and month of these dates can be distinguished in two ways",
                    options
                        .map(|format| json!({"date_format": format}))
                        .collect(),
                )
            }
            Some(TypeDoubt::NoZone) => Doubt::column(
                &header.text,
                "timezone",
                "these times have no offset; name the time zone in which they were taken",
                vec![json!({"timezone": "UTC"})],
            ),
        };
        self.doubts.push(doubt);
    }
}

impl Opening<'_> {
    pub(super) fn rules(&self) -> CellRules<'_> {
        let options = &self.reading.options;
        rules(
            options,
            &self.null_numbers,
            self.is_null_given,
            &self.formats,
        )
    }
}
