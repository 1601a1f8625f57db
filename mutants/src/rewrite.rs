//! Writes changes into a source, each beside what it replaces and behind its switch.
//!
//! Every rewritten place stands between `/*<*/` and `/*>*/`, so that an error of the compiler can
//! be traced to the change that made it ([`blame`]).

use crate::sites::{Kind, Site};
use std::collections::BTreeSet;
use std::ops::Range;

/// The module that the switches are in.
pub(crate) const SWITCH: &str = r#"//! Says which change is on.
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
static ON: AtomicU32 = AtomicU32::new(u32::MAX);
#[cold]
fn read() -> u32 {
    let id = std::env::var("FLOWSTART_MUTANT").ok().and_then(|id| id.parse().ok()).unwrap_or(0);
    ON.store(id, Relaxed);
    id
}
#[inline]
pub(crate) fn on(id: u32) -> bool {
    let now = ON.load(Relaxed);
    (if now == u32::MAX { read() } else { now }) == id
}
"#;

/// `source` with those changes in it whose number is in `wanted`.
pub(crate) fn rewrite(source: &str, sites: &[Site], wanted: &BTreeSet<u32>) -> String {
    let mut sites: Vec<&Site> = sites.iter().filter(|s| s.changes.iter().any(|c| wanted.contains(&c.id))).collect();
    // Outer places before those inside them.
    sites.sort_by_key(|s| (s.range.start, std::cmp::Reverse(s.range.end)));
    Writer { source, sites: &sites, wanted }.range(0..source.len(), 0)
}

struct Writer<'a> {
    source: &'a str,
    sites: &'a [&'a Site],
    wanted: &'a BTreeSet<u32>,
}

impl Writer<'_> {
    /// The text of `range` with the places in it rewritten, beginning at the place `from`.
    fn range(&self, range: Range<usize>, from: usize) -> String {
        let mut out = String::new();
        let mut at = range.start;
        for (number, site) in self.sites.iter().enumerate().skip(from) {
            if site.range.start < at || site.range.end > range.end {
                continue;
            }
            out.push_str(&self.source[at..site.range.start]);
            out.push_str(&format!("/*<*/{}/*>*/", self.site(number)));
            at = site.range.end;
        }
        out + &self.source[at..range.end]
    }

    /// An operand in brackets; a comment at its end must not swallow them.
    fn operand(&self, range: Range<usize>, from: usize) -> String {
        let text = self.range(range, from);
        let end = if text.contains("//") { "\n" } else { "" };
        format!("({text}{end})")
    }

    fn site(&self, number: usize) -> String {
        let (site, inner) = (self.sites[number], number + 1);
        let Range { start, end } = site.range;
        let changes = || site.changes.iter().filter(|c| self.wanted.contains(&c.id));
        let switch = |id: u32| format!("crate::mutation_switch::on({id})");
        let choice = |old: String, new: &dyn Fn(&str) -> String| {
            let news: String = changes().map(|c| format!("if {} {{ {} }} else ", switch(c.id), new(&c.new))).collect();
            format!("({news}{{ {old} }})")
        };
        match &site.kind {
            Kind::Binary { operator } => {
                let left = self.operand(start..operator.start, inner);
                let right = self.operand(operator.end..end, inner);
                let old = format!("{left} {} {right}", &self.source[operator.clone()]);
                choice(old, &|new| format!("{left} {new} {right}"))
            }
            Kind::Unary { operand } => {
                let value = self.operand(*operand..end, inner);
                choice(format!("{}{value}", &self.source[start..*operand]), &|_| value.clone())
            }
            Kind::Number => choice(self.source[start..end].to_string(), &str::to_string),
            Kind::Body => {
                let returns: String =
                    changes().map(|c| format!("if {} {{ return {}; }} ", switch(c.id), c.new)).collect();
                format!("{{{returns}")
            }
            Kind::Arm { guard } => {
                let old = guard.clone().map_or_else(|| "true".into(), |g| self.operand(g, inner));
                let add = |old: String, id, new: &str| match new {
                    "true" => format!("({} || {old})", switch(id)),
                    _ => format!("(!{} && {old})", switch(id)),
                };
                let condition = changes().fold(old, |old, c| add(old, c.id, &c.new));
                if guard.is_some() { condition } else { format!(" if {condition}") }
            }
        }
    }
}

/// The change that an error at byte `at` of a rewritten source comes from: the last one switched
/// before it in the innermost place around it, otherwise the last one before it at all.
pub(crate) fn blame(rewritten: &str, at: usize) -> Option<u32> {
    const SWITCHED: &str = "crate::mutation_switch::on(";
    // Numbers per place that is still open; the first is the file itself.
    let mut open: Vec<Option<u32>> = vec![None];
    let (mut last, mut position) = (None, 0);
    while position <= at && position < rewritten.len() {
        let rest = &rewritten.as_bytes()[position..];
        if rest.starts_with(b"/*<*/") {
            open.push(None);
        } else if rest.starts_with(b"/*>*/") && open.len() > 1 {
            open.pop();
        } else if rest.starts_with(SWITCHED.as_bytes()) {
            let digits: Vec<u8> = rest[SWITCHED.len()..].iter().copied().take_while(|b| b.is_ascii_digit()).collect();
            last = String::from_utf8(digits).ok().and_then(|d| d.parse().ok());
            if let Some(place) = open.last_mut() {
                *place = last;
            }
        }
        position += 1;
    }
    open.into_iter().rev().flatten().next().or(last)
}
