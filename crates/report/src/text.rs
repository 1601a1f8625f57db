//! Numbers as text, text made safe for a format, and how wide text is.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

/// Digits after the point that are ever printed; a double has no more than 17 significant ones.
const MAX_DIGITS: u8 = 17;

/// From here on a number is printed with an exponent: nobody reads longer rows of digits.
const EXPONENT_FROM: f64 = 1e15;

/// `value` with `digits` digits after the point, with an exponent from 1e15; `None` when it is not
/// finite.
pub(crate) fn number(value: f64, digits: u8) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let digits = usize::from(digits.min(MAX_DIGITS));
    let mut text = if value.abs() >= EXPONENT_FROM { format!("{value:.3e}") } else { format!("{value:.digits$}") };
    // A small negative number rounds to "-0.0".
    if text.starts_with('-') && text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.')) {
        text.remove(0);
    }
    Some(text)
}

/// The shortest text that reads back as `value`; empty when it is not finite.
pub(crate) fn exact(value: f64) -> String {
    if !value.is_finite() {
        String::new()
    } else if value != 0.0 && !(1e-7..EXPONENT_FROM).contains(&value.abs()) {
        format!("{value:e}")
    } else {
        format!("{value}")
    }
}

/// `value` with at most `significant` significant digits, as short as that allows (for embedded
/// data and coordinates).
pub(crate) fn short(value: f64, significant: usize) -> String {
    let rounded = format!("{value:.*e}", significant.saturating_sub(1)).parse::<f64>().unwrap_or(value);
    exact(rounded)
}

/// Escapes text for HTML and XML, in content and in quoted attributes. Characters that XML forbids
/// become U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            '\r' => out.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A JSON string, quotes included, that may stand inside an HTML `<script>` (no `<`, `>` or `&` in
/// it).
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '<' | '>' | '&' | '\'' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A blank at which no line is broken.
const FIRM_BLANK: char = '\u{a0}';

/// One line without control characters, so that a name cannot move a terminal's cursor or change
/// its colours.
#[must_use]
pub fn one_line(text: &str) -> String {
    let blank = |c: char| if c.is_whitespace() && c != FIRM_BLANK { ' ' } else { c };
    text.chars().map(blank).filter(|c| !c.is_control()).collect()
}

/// The text with firm blanks between a number and its unit (`100 kB`) and after a lonely sign
/// (`/ ideal`).
pub(crate) fn keep_together(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(' ') {
        let before = out.rsplit([' ', FIRM_BLANK]).next().unwrap_or_default();
        let number = before.starts_with(|c: char| c.is_ascii_digit()) && before.parse::<f64>().is_ok();
        if !out.is_empty() {
            out.push(if number || before == "/" { FIRM_BLANK } else { ' ' });
        }
        out.push_str(word);
    }
    out
}

/// Terminal columns that `text` takes.
pub(crate) fn columns(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Breaks `text` between words into lines of at most `width` terminal columns; longer words are
/// cut. Never empty. Firm blanks become plain ones.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in text.split(|c: char| c.is_whitespace() && c != FIRM_BLANK).filter(|word| !word.is_empty()) {
        let word = word.replace(FIRM_BLANK, " ");
        let mut word = word.as_str();
        loop {
            let last = lines.len() - 1;
            let gap = usize::from(!lines[last].is_empty());
            if columns(&lines[last]) + gap + columns(word) <= width {
                if gap == 1 {
                    lines[last].push(' ');
                }
                lines[last].push_str(word);
                break;
            }
            if gap == 1 {
                lines.push(String::new());
                continue;
            }
            let cut = prefix(word, width);
            lines[last].push_str(&word[..cut]);
            word = &word[cut..];
            if word.is_empty() {
                break;
            }
            lines.push(String::new());
        }
    }
    lines
}

/// Bytes of the longest prefix of `word` within `width` columns, at least one character.
fn prefix(word: &str, width: usize) -> usize {
    let mut end = 0;
    for (start, c) in word.char_indices() {
        let next = start + c.len_utf8();
        if end > 0 && columns(&word[..next]) > width {
            break;
        }
        end = next;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_and_never_show_a_negative_zero() {
        assert_eq!(number(1.25, 1).as_deref(), Some("1.2"));
        assert_eq!(number(-0.04, 1).as_deref(), Some("0.0"));
        assert_eq!(number(-0.05, 2).as_deref(), Some("-0.05"));
        assert_eq!(number(1e300, 2).as_deref(), Some("1.000e300"));
        assert_eq!(number(f64::NAN, 2), None);
        assert_eq!(number(f64::NEG_INFINITY, 2), None);
    }

    #[test]
    fn short_numbers_keep_the_digits_asked_for() {
        assert_eq!(short(0.123_456_789, 5), "0.12346");
        assert_eq!(short(123_456.0, 4), "123500");
        assert_eq!(short(1.0, 5), "1");
        assert_eq!(short(1e-12, 5), "1e-12");
    }

    #[test]
    fn escaping_leaves_no_markup_and_no_control_character() {
        assert_eq!(escape("<a href=\"x\">'&\u{1b}[31m"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;\u{fffd}[31m");
        assert_eq!(json("</script>\n\"\\"), "\"\\u003c/script\\u003e\\u000a\\\"\\\\\"");
        assert_eq!(one_line("a\u{1b}[2J\nb"), "a[2J b");
    }

    #[test]
    fn wrapping_breaks_between_words_and_cuts_words_that_are_too_long() {
        assert_eq!(wrap("window at exit", 8), ["window", "at exit"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap(&keep_together("after 10 RTT"), 6), ["after", "10 RTT"]);
        assert_eq!(wrap(&keep_together("1 MB / ideal"), 4), ["1 MB", "/ id", "eal"]);
        assert_eq!(keep_together("a b"), "a b");
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("日本語", 1), ["日", "本", "語"]);
    }
}
