//! Tables as GitHub-flavoured Markdown, for pull requests and notes.

use crate::page::Page;
use crate::table::{Align, Table};

impl Page {
    /// The page as Markdown, without its figures.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut out = format!("# {}\n\n", escape(&self.title));
        if !self.command.is_empty() {
            out.push_str(&format!("    {}\n\n", self.command.replace('\n', " ")));
        }
        let paragraphs = |out: &mut String, texts: &[String]| {
            texts.iter().for_each(|text| out.push_str(&format!("{}\n\n", escape(text))));
        };
        paragraphs(&mut out, &self.warnings);
        if !self.answer.is_empty() {
            out.push_str(&format!("**{}**\n\n", escape(&self.answer)));
        }
        paragraphs(&mut out, &self.summary);
        for section in self.sections.iter().filter(|section| !section.folded && !section.tables.is_empty()) {
            if !section.heading.is_empty() {
                out.push_str(&format!("## {}\n\n", escape(&section.heading)));
            }
            for table in &section.tables {
                out.push_str(&table.to_markdown());
                out.push('\n');
            }
        }
        self.footnotes.iter().for_each(|note| out.push_str(&format!("- {}\n", escape(note))));
        let from: Vec<String> = self.provenance.iter().map(|(key, value)| format!("{key} {value}")).collect();
        if !from.is_empty() {
            out.push_str(&format!("- {}\n", escape(&from.join(", "))));
        }
        out
    }
}

impl Table {
    /// The table as a Markdown table, the best values in bold, title above and notes below.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut out = String::new();
        if !self.title.is_empty() {
            out.push_str(&format!("**{}**\n\n", escape(&self.title)));
        }
        let headings = self.columns.iter().map(|column| {
            let unit = if column.unit.is_empty() { String::new() } else { format!(" ({})", escape(&column.unit)) };
            format!("{}{unit}", escape(&column.heading))
        });
        record(&mut out, headings);
        record(
            &mut out,
            self.columns.iter().map(|column| if column.align == Align::Right { "---:" } else { "---" }.to_owned()),
        );
        let winners: Vec<Vec<bool>> = (0..self.columns.len()).map(|column| self.winners(column)).collect();
        for row in 0..self.rows.len() {
            let cells = winners.iter().enumerate().map(|(column, winners)| {
                let cell = self.cell(row, column);
                let Some(main) = cell.main() else { return "–".to_owned() };
                let main = escape(&main);
                let main = if winners[row] { format!("**{main}**") } else { main };
                main + &cell.interval()
            });
            record(&mut out, cells);
        }
        for note in &self.notes {
            out.push_str(&format!("\n{}\n", escape(note)));
        }
        out
    }
}

/// One row of the table.
fn record(out: &mut String, cells: impl Iterator<Item = String>) {
    out.push('|');
    for cell in cells {
        out.push_str(&format!(" {cell} |"));
    }
    out.push('\n');
}

/// Plain text as Markdown that shows it unchanged, on one line.
fn escape(text: &str) -> String {
    let text = crate::text::one_line(text);
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        // An underscore inside a word is no emphasis in GitHub's Markdown.
        let inside_word = before.is_alphanumeric() && rest.peek().is_some_and(|next| next.is_alphanumeric());
        match c {
            '\\' | '|' | '*' | '`' | '<' | '>' | '[' | ']' | '~' | '&' => out.push('\\'),
            '_' if !inside_word => out.push('\\'),
            _ => {}
        }
        out.push(c);
        before = c;
    }
    out
}
