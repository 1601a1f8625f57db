//! Tables of a page.

use std::fmt::Write as _;

use super::{csv_link, file_name, paragraphs};
use crate::color::Color;
use crate::table::{Align, Cell, Table};
use crate::text::{columns, escape, exact, keep_together};

/// Text longer than this many characters is wrapped.
const LONG_TEXT: usize = 30;

/// Writes a table with a title of this heading's level: title, headings with their explanations,
/// rows, a link to its CSV.
pub(super) fn write(out: &mut String, table: &Table, heading: &str, count: usize) {
    out.push_str("<div class=\"table\">\n<div class=\"bar\">");
    let _ = write!(out, "<{heading}>{}</{heading}>", escape(&table.title));
    let _ = write!(
        out,
        "{}</div>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>\n",
        csv_link(&table.to_csv(), &file_name(&table.title, count)),
        escape(&table.title)
    );
    headings(out, table);
    rows(out, table);
    out.push_str("</table></div>\n");
    paragraphs(out, &table.notes);
    explanations(out, table);
    out.push_str("</div>\n");
}

fn headings(out: &mut String, table: &Table) {
    out.push_str("<thead><tr>");
    for column in &table.columns {
        let class = if column.align == Align::Right { " class=\"number\"" } else { "" };
        let title = if column.help.is_empty() { String::new() } else { format!(" title=\"{}\"", escape(&column.help)) };
        let unit =
            if column.unit.is_empty() { String::new() } else { format!(" <small>{}</small>", escape(&column.unit)) };
        let _ = write!(out, "<th scope=\"col\"{class}{title}>{}{unit}</th>", escape(&keep_together(&column.heading)));
    }
    out.push_str("</tr></thead>\n");
}

fn rows(out: &mut String, table: &Table) {
    let winners: Vec<Vec<bool>> = (0..table.columns.len()).map(|column| table.winners(column)).collect();
    // Numbers stand above each other although the intervals beside them are not equally long.
    let tails: Vec<usize> = (0..table.columns.len())
        .map(|column| {
            (0..table.rows.len()).map(|row| columns(&table.cell(row, column).interval())).max().unwrap_or_default()
        })
        .collect();
    out.push_str("<tbody>\n");
    for (row, about) in table.rows.iter().enumerate() {
        out.push_str("<tr>");
        for (column, heading) in table.columns.iter().enumerate() {
            let cell = table.cell(row, column);
            let mut classes = Vec::new();
            if heading.align == Align::Right {
                classes.push("number");
            }
            if matches!(cell, Cell::Text(text) if columns(text) > LONG_TEXT) {
                classes.push("long");
            }
            if winners[column][row] {
                classes.push("best");
            }
            let class = if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) };
            let sort = cell.value().map_or_else(String::new, |value| format!(" data-v=\"{}\"", exact(value)));
            let (tag, scope) = if heading.key { ("th", " scope=\"row\"") } else { ("td", "") };
            let dot = about.color.filter(|_| column == 0).map_or_else(String::new, swatch);
            let shown = if heading.key { breakable(&shown(cell)) } else { shown(cell) };
            let _ = write!(out, "<{tag}{scope}{class}{sort}>{dot}{shown}{}</{tag}>", tail(cell, tails[column]));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n");
}

/// How the lines of a contestant look: a dot for those that are whole, a piece of the line else.
fn swatch(color: Color) -> String {
    let (hue, dashes) = (color.hue(), color.dashes());
    if dashes.is_empty() {
        return format!("<span class=\"dot k{hue}\"></span>");
    }
    format!(
        "<svg class=\"dash k{hue}\" width=\"26\" height=\"10\" aria-hidden=\"true\"><path d=\"M0 5h26\" \
         stroke-dasharray=\"{dashes}\"/></svg>"
    )
}

fn shown(cell: &Cell) -> String {
    cell.main().map_or_else(|| "<span class=\"missing\">–</span>".to_owned(), |main| escape(&main))
}

/// A name that may be broken where its parts meet: on a phone its column is narrow.
fn breakable(name: &str) -> String {
    name.replace('+', "+<wbr>").replace('_', "_<wbr>")
}

/// The interval, in a box as wide as the widest of the column.
fn tail(cell: &Cell, widest: usize) -> String {
    if widest == 0 {
        return String::new();
    }
    format!("<span class=\"interval\" style=\"min-width:{widest}ch\">{}</span>", escape(&cell.interval()))
}

/// What the columns mean, for paper and fingers, which do not hover.
fn explanations(out: &mut String, table: &Table) {
    if table.columns.iter().all(|column| column.help.is_empty()) {
        return;
    }
    out.push_str("<details><summary>What the columns mean</summary><dl>\n");
    for column in table.columns.iter().filter(|column| !column.help.is_empty()) {
        let unit = if column.unit.is_empty() { String::new() } else { format!(" ({})", escape(&column.unit)) };
        let _ = writeln!(out, "<dt>{}{unit}</dt><dd>{}</dd>", escape(&column.heading), escape(&column.help));
    }
    out.push_str("</dl></details>\n");
}
