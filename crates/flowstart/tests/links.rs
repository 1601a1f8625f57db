//! Links from page to page lead to pages and headings that are there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages of the repository's root and of `docs`, by their names from the root.
fn pages() -> HashMap<String, String> {
    let mut pages = HashMap::new();
    for folder in ["", "docs"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a folder") {
            let name = entry.expect("a file").file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                let place = Path::new(folder).join(&name);
                let text = std::fs::read_to_string(root().join(&place)).expect("a page");
                pages.insert(place.to_string_lossy().into_owned(), text);
            }
        }
    }
    pages
}

/// The lines that are prose: not those of code.
fn prose(page: &str) -> String {
    let mut code = false;
    let lines = page.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// What a heading is called in links.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(page: &str) -> Vec<String> {
    let prose = prose(page);
    prose.lines().filter(|line| line.starts_with('#')).map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// The targets of the links of a page that lead to no other site.
fn links(page: &str) -> Vec<String> {
    let prose = prose(page);
    let targets = prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()));
    targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace)).collect()
}

/// Why a link of the page `from` leads nowhere, if so.
fn broken(pages: &HashMap<String, String>, from: &str, target: &str) -> Option<String> {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let place = match file {
        "" => PathBuf::from(from),
        file => Path::new(from).parent().unwrap_or(Path::new("")).join(file),
    };
    if !root().join(&place).exists() {
        return Some(format!("{from}: {target}: no such file"));
    }
    // Without the steps up: "docs/../README.md".
    let name = place.to_string_lossy().replace("docs/../", "");
    let page = pages.get(&name).filter(|_| !heading.is_empty())?;
    (!anchors(page).iter().any(|known| known == heading)).then(|| format!("{from}: {target}: no such heading"))
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_are_there() {
    let pages = pages();
    let all: Vec<(&String, String)> =
        pages.iter().flat_map(|(from, page)| links(page).into_iter().map(move |link| (from, link))).collect();
    assert!(all.iter().filter(|(_, link)| link.contains('#')).count() > 100, "links are found");
    let mut wrong: Vec<String> = all.iter().filter_map(|(from, link)| broken(&pages, from, link)).collect();
    wrong.sort();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_link_to_what_is_not_there_is_noticed() {
    let page =
        "## `A` heading, twice\n[one](#a-heading-twice) [two](#b) [three](nowhere.md)\n```\n# code\n[x](y.md)\n```\n";
    let from = "docs/README.md";
    let pages = HashMap::from([(from.to_owned(), page.to_owned())]);
    let wrong: Vec<_> = links(page).iter().filter_map(|link| broken(&pages, from, link)).collect();
    assert_eq!(links(page), ["#a-heading-twice", "#b", "nowhere.md"]);
    assert_eq!(anchors(page), ["a-heading-twice"]);
    assert_eq!(wrong, [format!("{from}: #b: no such heading"), format!("{from}: nowhere.md: no such file")]);
}
