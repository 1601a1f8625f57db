//! A page as one HTML file: no network, no fonts, no scripts from elsewhere.

mod figure;
mod script;
mod table;

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use self::figure::{Around, Place};
use self::script::script;
use crate::page::{Page, Section};
use crate::svg::style;
use crate::text::escape;
use flowstart_files::write_atomically;

/// Columns of pixels per curve, as long as a page has few curves.
const COLUMNS: usize = 600;

/// Curves from which on all have fewer columns, so that the page stays below about 2 MB.
const MANY_CURVES: usize = 24;

/// A curve never has fewer columns than this.
const LEAST_COLUMNS: usize = 60;

/// Nothing may be loaded from anywhere, whatever ends up in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

impl Page {
    /// The page as one self-contained HTML file.
    #[must_use]
    pub fn to_html(&self) -> String {
        let figures = self.sections.iter().flat_map(|section| &section.figures).chain(&self.lead);
        let curves: usize = figures.map(|figure| figure.series.len()).sum();
        let columns = (COLUMNS * MANY_CURVES / curves.max(MANY_CURVES)).max(LEAST_COLUMNS);
        let around = Around { columns, command: &self.command };
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"generator\" content=\"flowstart\">\n<title>{}</title>\n<style>\n{}{}\n</style>\n</head>\n<body>\n<main>\n",
            escape(&self.title),
            include_str!("page.css"),
            style()
        );
        self.header(&mut out);
        let mut count = 0;
        for figure in &self.lead {
            count += 1;
            let place = if count == 1 { Place::Lead } else { Place::Joined };
            figure::write(&mut out, figure, place, &around, count);
        }
        self.verdict(&mut out);
        for section in &self.sections {
            write_section(&mut out, section, &around, &mut count);
        }
        if !self.footnotes.is_empty() {
            out.push_str("<footer>\n<details><summary>Notes</summary>\n");
            paragraphs(&mut out, &self.footnotes);
            out.push_str("</details>\n</footer>\n");
        }
        let _ = write!(out, "</main>\n<script type=\"module\">\n{}</script>\n</body>\n</html>\n", script());
        out
    }

    /// Writes the page to a file, completely or not at all.
    ///
    /// # Errors
    ///
    /// When the folder or the file cannot be written; an existing file stays as it was.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_atomically(path, self.to_html().as_bytes())
    }

    /// Title, command, where the numbers come from.
    fn header(&self, out: &mut String) {
        let _ = write!(out, "<header>\n<h1>{}</h1>\n", escape(&self.title));
        if !self.command.is_empty() {
            out.push_str(&command(&self.command));
        }
        if !self.provenance.is_empty() {
            let first = self.provenance.iter().take(3).map(|(key, value)| format!("{key} {value}"));
            let first: Vec<String> = first.collect();
            let _ = write!(
                out,
                "<details class=\"made\"><summary>{}</summary>\n<dl class=\"provenance\">\n",
                escape(&first.join(" · "))
            );
            for (key, value) in &self.provenance {
                let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(key), escape(value));
            }
            out.push_str("</dl></details>\n");
        }
        out.push_str("</header>\n");
        if !self.warnings.is_empty() {
            out.push_str("<div class=\"warnings\">\n");
            paragraphs(out, &self.warnings);
            out.push_str("</div>\n");
        }
        if !self.answer.is_empty() {
            let _ = writeln!(out, "<p class=\"answer\">{}</p>", escape(&self.answer));
        }
    }

    /// What came out, in words.
    fn verdict(&self, out: &mut String) {
        if !self.summary.is_empty() {
            out.push_str("<div class=\"summary\">\n");
            paragraphs(out, &self.summary);
            out.push_str("</div>\n");
        }
    }
}

/// One section; `count` numbers tables and figures through the page.
fn write_section(out: &mut String, section: &Section, around: &Around<'_>, count: &mut usize) {
    out.push_str("<section>\n");
    if section.folded {
        let _ = writeln!(out, "<details><summary><h2>{}</h2></summary>", escape(&section.heading));
    } else if !section.heading.is_empty() {
        let _ = writeln!(out, "<h2>{}</h2>", escape(&section.heading));
    }
    paragraphs(out, &section.paragraphs);
    // No level of headings is left out.
    let (heading, place) = if section.heading.is_empty() { ("h2", Place::Alone) } else { ("h3", Place::Grid) };
    for table in &section.tables {
        *count += 1;
        table::write(out, table, heading, *count);
    }
    if !section.figures.is_empty() {
        out.push_str("<div class=\"figures\">\n");
        for figure in &section.figures {
            *count += 1;
            figure::write(out, figure, place, around, *count);
        }
        out.push_str("</div>\n");
    }
    if section.folded {
        out.push_str("</details>\n");
    }
    out.push_str("</section>\n");
}

fn paragraphs(out: &mut String, paragraphs: &[String]) {
    for paragraph in paragraphs {
        let _ = writeln!(out, "<p>{}</p>", escape(paragraph));
    }
}

/// A command with a button that copies it (which the script shows: without a script it could do
/// nothing).
fn command(command: &str) -> String {
    format!(
        "<div class=\"command\"><code>{}</code><button type=\"button\" hidden>Copy</button></div>\n",
        escape(command)
    )
}

/// A link that saves `contents` as a CSV file, without script.
fn csv_link(contents: &str, file: &str) -> String {
    let mut encoded = String::with_capacity(contents.len() * 2);
    for byte in contents.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    format!("<a class=\"csv\" download=\"{}.csv\" href=\"data:text/csv;charset=utf-8,{encoded}\">CSV</a>", escape(file))
}

/// A name for a file, without its ending: letters and digits of the title.
fn file_name(title: &str, count: usize) -> String {
    let words: Vec<String> = title
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(8)
        .map(str::to_ascii_lowercase)
        .collect();
    if words.is_empty() { format!("data-{count}") } else { words.join("-") }
}
