//! How wide a text is in a proportional sans-serif, without a font: good enough to place labels.

/// Width of `text` in pixels at a font size, erring on the wide side (measured against DejaVu Sans,
/// a wide face).
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

/// `text`, or as much of its beginning as fits into `room` pixels with an ellipsis.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = em('…') * size;
    for c in text.chars() {
        used += em(c) * size;
        if used > room {
            break;
        }
        out.push(c);
    }
    out.trim_end().to_owned() + "…"
}

/// Breaks `text` between words into lines of at most `room` pixels; a longer word stays whole.
pub(crate) fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(word, size) + em(' ') * size <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Advance width of a character in units of the font size.
fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' | '|' => 0.28,
        ' ' | ',' | '.' | ':' | ';' | 'I' | '!' => 0.32,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' | '"' | '\\' => 0.4,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 0.98,
        'A'..='Z' | '&' => 0.74,
        '=' | '+' | '<' | '>' | '×' | '−' | '~' | '#' => 0.8,
        '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.42,
        c if (c as u32) < 0x1100 => 0.63,
        // East Asian and pictographic characters fill a square.
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_does_not_fit_ends_in_an_ellipsis_and_then_fits() {
        let text = "cubic with paced chirping over a very long path";
        let short = fit(text, 12.0, 100.0);
        assert!(short.ends_with('…') && width(&short, 12.0) <= 100.0, "{short}");
        assert_eq!(fit("reno", 12.0, 100.0), "reno");
        assert_eq!(wrap("one two three", 10.0, 45.0), ["one two", "three"]);
    }
}
