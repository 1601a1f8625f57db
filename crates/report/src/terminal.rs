//! Tables for terminals: no lines but one, headings wrapped, as many blocks as the width demands.

use std::io::IsTerminal;

use crate::color::{Color, Rgb};
use crate::table::{Align, Table};
use crate::text::{columns, keep_together, one_line, wrap};

/// Blanks between two columns.
const GAP: usize = 2;

/// Columns of the row's coloured dot with its blank.
const DOT: usize = 2;

/// Text columns are not squeezed below this many terminal columns.
const LEAST_TEXT: usize = 12;

/// Headings are wrapped to the width of their column, but not into more lines than this.
const MOST_HEADING_LINES: usize = 3;

/// What a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Terminal columns; `usize::MAX` for a file or a pipe, which are never wrapped.
    pub width: usize,
    /// Whether colours and bold are understood and wanted.
    pub color: bool,
    /// Whether all 24 bits of a colour are understood (otherwise the nearest of 256 is taken).
    pub true_color: bool,
    /// Whether more than ASCII can be shown.
    pub unicode: bool,
}

impl Terminal {
    /// A file, a pipe or a log: no colours, no wrapping.
    #[must_use]
    pub const fn plain() -> Self {
        Self { width: usize::MAX, color: false, true_color: false, unicode: true }
    }

    /// What standard output is: its width if it is a terminal, colours unless `NO_COLOR` is set or
    /// `TERM` is `dumb`, more than ASCII if the locale says UTF-8. The width is `COLUMNS` if that
    /// is a number.
    #[must_use]
    pub fn of_stdout() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
        let unicode = cfg!(windows)
            || cfg!(target_os = "macos")
            || locale.is_some_and(|locale| locale.to_lowercase().replace('-', "").contains("utf8"));
        if !std::io::stdout().is_terminal() {
            return Self { unicode, ..Self::plain() };
        }
        let columns = variable("COLUMNS").and_then(|columns| columns.parse().ok());
        let width = columns.or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)));
        let color = variable("NO_COLOR").is_none() && variable("TERM").is_none_or(|term| term != "dumb");
        let true_color = variable("COLORTERM").is_some_and(|value| value == "truecolor" || value == "24bit");
        Self { width: width.filter(|&width| width > 0).unwrap_or(80), color, true_color, unicode }
    }
}

impl Terminal {
    /// The text in characters that this terminal has.
    fn show(self, text: &str) -> String {
        if self.unicode { text.to_owned() } else { ascii(text) }
    }
}

/// One line of a cell: its text and how it looks.
#[derive(Clone, Debug, Default)]
struct Line {
    text: String,
    bold: bool,
}

/// A column ready to print: heading lines, then the lines of each row, all of them `width` wide.
struct Block {
    width: usize,
    align: Align,
    heading: Vec<String>,
    unit: String,
    rows: Vec<Vec<Line>>,
}

impl Table {
    /// The table as lines of text, each ended by a newline.
    ///
    /// When the columns do not fit side by side, text is wrapped first; then the columns are split
    /// into several blocks below each other, each with the key columns. Without colours the best
    /// values carry a `*`.
    #[must_use]
    pub fn to_terminal(&self, terminal: Terminal) -> String {
        let mut out = String::new();
        if !self.title.is_empty() {
            out.push_str(&paint(&one_line(&self.title), terminal.color, "1"));
            out.push_str("\n\n");
        }
        let dots = self.rows.iter().any(|row| row.color.is_some()) && terminal.color;
        let mut blocks: Vec<Block> = (0..self.columns.len()).map(|column| self.block(column, terminal, None)).collect();
        let keys = self.columns.iter().take_while(|column| column.key).count();
        let room = terminal.width.saturating_sub(if dots { DOT } else { 0 });
        if total(&blocks) > room {
            for (column, block) in blocks.iter_mut().enumerate() {
                let limit = (room / 3).max(LEAST_TEXT);
                if self.columns[column].align == Align::Left && block.width > limit {
                    *block = self.block(column, terminal, Some(limit));
                }
            }
        }
        let (key_blocks, others) = blocks.split_at(keys);
        let mut rest = others;
        let mut first = true;
        loop {
            let mut count = rest.len();
            while count > 1 && total(key_blocks) + total(&rest[..count]) + GAP > room {
                count -= 1;
            }
            let (now, later) = rest.split_at(count);
            if !first {
                out.push('\n');
            }
            first = false;
            let shown: Vec<&Block> = key_blocks.iter().chain(now).collect();
            self.print(&mut out, &shown, terminal, dots);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        let any_winner = || (0..self.columns.len()).any(|column| self.winners(column).contains(&true));
        if !terminal.color && any_winner() {
            out.push_str("* best of its column\n");
        }
        for note in &self.notes {
            for line in wrap(&one_line(note), terminal.width) {
                out.push_str(&line);
                out.push('\n');
            }
        }
        terminal.show(&out)
    }

    /// Lays out one column; text is wrapped at `limit`.
    fn block(&self, column: usize, terminal: Terminal, limit: Option<usize>) -> Block {
        let about = &self.columns[column];
        let winners = self.winners(column);
        let star = !terminal.color && winners.contains(&true);
        let parts: Vec<(String, String)> = (0..self.rows.len())
            .map(|row| {
                let cell = self.cell(row, column);
                let main = cell.main().map_or_else(|| "–".to_owned(), |main| one_line(&main));
                let interval = cell.interval() + if star { [" ", "*"][usize::from(winners[row])] } else { "" };
                (terminal.show(&main), terminal.show(&interval))
            })
            .collect();
        // Numbers stand above each other although the intervals beside them are not equally long.
        let tail = parts.iter().map(|(_, tail)| columns(tail)).max().unwrap_or(0);
        let rows: Vec<Vec<Line>> = (0..self.rows.len())
            .map(|row| {
                let (main, interval) = &parts[row];
                let text = if about.align == Align::Right {
                    format!("{main}{interval}{}", " ".repeat(tail - columns(interval)))
                } else {
                    format!("{main}{interval}")
                };
                let lines =
                    if about.align == Align::Right { vec![text] } else { wrap(&text, limit.unwrap_or(usize::MAX)) };
                lines.into_iter().map(|text| Line { text, bold: winners[row] }).collect()
            })
            .collect();
        let cells = rows.iter().flatten().map(|line| columns(&line.text)).max().unwrap_or(0);
        let heading = terminal.show(&keep_together(&one_line(&about.heading)));
        let words = heading.split(' ').map(columns).max().unwrap_or(0);
        let words = limit.map_or(words, |limit| words.min(limit));
        let unit = terminal.show(&one_line(&about.unit));
        let mut room = cells.max(words).max(columns(&unit));
        while wrap(&heading, room).len() > MOST_HEADING_LINES {
            room += 1;
        }
        let heading = wrap(&heading, room);
        let width = heading.iter().map(|line| columns(line)).chain([cells, columns(&unit)]).max().unwrap_or(0);
        Block { width, align: about.align, heading, unit, rows }
    }

    /// Prints columns side by side.
    fn print(&self, out: &mut String, blocks: &[&Block], terminal: Terminal, dots: bool) {
        let margin = if dots { " ".repeat(DOT) } else { String::new() };
        let line = |out: &mut String, margin: &str, style: &str, texts: &mut dyn Iterator<Item = (String, bool)>| {
            let mut painted = margin.to_owned();
            let mut blanks = 0;
            for (block, (text, bold)) in blocks.iter().zip(texts) {
                let fill = block.width.saturating_sub(columns(&text));
                let (before, after) = if block.align == Align::Right { (fill, 0) } else { (0, fill) };
                if !text.is_empty() {
                    painted.push_str(&" ".repeat(blanks + before));
                    blanks = 0;
                    painted.push_str(&paint(&text, terminal.color, if bold { "1" } else { style }));
                } else {
                    blanks += before;
                }
                blanks += after + GAP;
            }
            out.push_str(painted.trim_end());
            out.push('\n');
        };
        let height = blocks.iter().map(|block| block.heading.len()).max().unwrap_or(0);
        for i in 0..height {
            // Headings stand on the line below them.
            let text = |block: &&Block| {
                let above = height - block.heading.len();
                i.checked_sub(above).map_or_else(String::new, |i| block.heading[i].clone())
            };
            line(out, &margin, "1", &mut blocks.iter().map(|block| (text(block), false)));
        }
        if blocks.iter().any(|block| !block.unit.is_empty()) {
            line(out, &margin, "2", &mut blocks.iter().map(|block| (block.unit.clone(), false)));
        }
        let full = blocks.iter().map(|block| block.width + GAP).sum::<usize>().saturating_sub(GAP) + columns(&margin);
        out.push_str(&paint(&"─".repeat(full), terminal.color, "2"));
        out.push('\n');
        for (row, about) in self.rows.iter().enumerate() {
            let lines = blocks.iter().map(|block| block.rows[row].len()).max().unwrap_or(0);
            for i in 0..lines {
                let dot = match about.color {
                    Some(color) if dots && i == 0 => format!("{} ", dot(color, terminal)),
                    _ => margin.clone(),
                };
                let text = |block: &&Block| {
                    block.rows[row].get(i).map_or_else(|| (String::new(), false), |line| (line.text.clone(), line.bold))
                };
                line(out, &dot, "", &mut blocks.iter().map(text));
            }
        }
    }
}

/// Terminal columns of blocks side by side.
fn total(blocks: &[Block]) -> usize {
    blocks.iter().map(|block| block.width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Text in an SGR style (`1` bold, `2` faint), if colours are on.
fn paint(text: &str, color: bool, style: &str) -> String {
    if color && !style.is_empty() && !text.is_empty() {
        format!("\u{1b}[{style}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

/// The dot of a contestant.
fn dot(color: Color, terminal: Terminal) -> String {
    let rgb = color.between();
    let shade = if terminal.true_color {
        format!("38;2;{};{};{}", rgb[0], rgb[1], rgb[2])
    } else {
        format!("38;5;{}", nearest_of_256(rgb))
    };
    paint(if color.dashes().is_empty() { "●" } else { "○" }, true, &shade)
}

/// The nearest entry of the 6×6×6 cube of xterm's 256 colours.
fn nearest_of_256(rgb: Rgb) -> u8 {
    // The cube's steps are 0, 95, 135, 175, 215, 255.
    let step = |c: u8| if c < 48 { 0 } else { (c.max(75) - 55 + 20) / 40 };
    16 + 36 * step(rgb[0]) + 6 * step(rgb[1]) + step(rgb[2])
}

/// The same text in ASCII: what has a likeness gets it, the rest becomes `?`.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '±' => out.push_str("+-"),
            '–' | '─' | '−' => out.push('-'),
            '●' | '○' => out.push('*'),
            'µ' | 'μ' => out.push('u'),
            '×' => out.push('x'),
            // Still firm, for the wrapping that follows; it then becomes a plain blank.
            '\u{a0}' => out.push(c),
            c if c.is_ascii() => out.push(c),
            _ => out.push('?'),
        }
    }
    out
}
