//! What files say, and which are refused.

use super::*;

#[test]
fn variants_are_all_combinations_of_levels_each_a_scenario_of_its_own() {
    let figure = figure(GOOD);
    let names: Vec<&str> = figure.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["hystart, near", "hystart, far", "plain, near", "plain, far"]);
    let Subject::Scenario(far) = &figure.variants[3].subject else { panic!() };
    assert_eq!(far.path.as_ref().unwrap().rtt, Span::from_millis(40));
    assert_eq!(far.flow[0].algorithm.as_deref(), Some("slow_start+cubic"));
    assert_eq!(far.arrivals[0].flow.algorithm.as_deref(), Some("cubic"));
    assert_eq!(far.title, "without, far");
    assert_eq!(figure.claims[0].cases, [(0, Some(2)), (1, Some(3))]);
    assert_eq!(figure.claims[1].cases, [(2, None)]);
}

#[test]
fn errors_point_at_line_and_column_and_say_what_would_be_right() {
    let line_of = |wanted: &str| GOOD[..GOOD.find(wanted).unwrap()].matches('\n').count() + 1;
    for (from, to, at, parts) in [
        ("shows = ", "show = ", "shows = ", vec!["unknown field `show`", "did you mean `shows`?"]),
        ("capacity = \"20 Mbit/s\"", "capacity = 20", "capacity", vec!["did you mean \"20 Mbit/s\"?"]),
        ("path.rtt = \"40 ms\"", "path.rtt = \"0 ms\"", "path.rtt = \"40 ms\"", vec!["above 0"]),
        ("path.rtt = \"40 ms\"", "path.rt = \"40 ms\"", "path.rtt = \"40 ms\"", vec!["did you mean `rtt`?"]),
        ("flow.algorithm = \"hystart+cubic\"", "flow.algorithm = \"hystart+cubid\"", "flow.algorithm", vec!["cubic"]),
        ("of = \"hystart\"", "of = \"histart\"", "of = \"hystart\"", vec!["did you mean \"hystart\"?"]),
        ("ratio_to = \"plain\"", "ratio_to = [\"plain\", \"hystart\"]", "ratio_to", vec!["two levels of \"control\""]),
        ("shows = ", "open = [\"rt\"]\nshows = ", "shows", vec!["no factor \"rt\"", "did you mean \"rtt\"?"]),
        ("ratio_to = \"plain\"", "ratio_to = \"hystart\"", "ratio_to", vec!["with itself"]),
        ("expect = \"< 1\"", "expect = \"< 1 ms\"", "expect = \"< 1\"", vec!["it looks like \"0.8\""]),
        ("expect = \"<= 500 ms\"", "expect = \"about\"", "expect = \"<= 500 ms\"", vec!["looks like"]),
        ("flow = \"web\"", "flow = \"wen\"", "measure = { kind = \"completion", vec!["did you mean \"web\"?"]),
        ("statistic = \"max\"", "statistic = \"most\"", "measure = { kind = \"queue", vec!["\"p99\""]),
        ("id = \"never\"", "id = \"queue\"", "id = \"never\"", vec!["two claims \"queue\""]),
        ("apart = [\"rtt\"]", "apart = [\"rt\"]", "apart", vec!["did you mean \"rtt\"?"]),
        ("load = \"20 %\"", "load = \"20 %\"\nmean_gap = \"5 ms\"", "load", vec!["either a mean_gap"]),
    ] {
        let (line, message) = error(from, to);
        assert!(line.abs_diff(line_of(at)) <= 1, "{to}: line {line}, not {}: {message}", line_of(at));
        for part in parts {
            assert!(message.contains(part), "{to}: {message}");
        }
    }
}

#[test]
fn two_levels_of_one_name_and_claims_without_expectation_are_refused() {
    assert!(error("[vary.rtt.far]", "[vary.rtt.plain]").1.contains("two levels \"plain\""));
    assert!(error("expect = \"< 1\"\n", "").1.contains("is missing"));
    let nothing = &GOOD[..GOOD.find("[[claim]]").unwrap()];
    assert!(Figure::parse("x", nothing, None).unwrap_err().to_string().contains("nothing is claimed"));
}

#[test]
fn every_paper_that_comes_with_the_program_reads_and_its_measures_exist() {
    let papers = papers().unwrap();
    assert!(!papers.is_empty());
    for paper in &papers {
        for name in &paper.figures {
            let found = figures(name).unwrap_or_else(|error| panic!("{error}\n{}", error.snippet()));
            let own = name.split('/').next_back().unwrap();
            let continued = paper.about.continued.get(own).into_iter().flatten();
            let expected: Vec<String> = std::iter::once(name.clone())
                .chain(continued.map(|figure| format!("{}/{figure}", paper.name)))
                .collect();
            let names: Vec<&String> = found.iter().map(|figure| &figure.name).collect();
            assert_eq!(names, expected.iter().collect::<Vec<_>>());
            assert!(!found[0].pictures.is_empty(), "{name} has no picture");
        }
    }
    let all = figures("").unwrap().len();
    assert_eq!(all, papers.iter().map(|paper| paper.figures.len()).sum::<usize>());
    assert_eq!(figures("fair-queuing/trains-mistakes").unwrap().len(), 4);
    let error = figures("paced-chriping").unwrap_err().to_string();
    assert!(error.contains("did you mean \"paced-chirping\"?"), "{error}");
    assert!(error.contains("a file of your own ends in .toml"), "{error}");
}

#[test]
fn every_file_of_the_folder_is_listed_in_its_paper() {
    let root = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let listed: Vec<String> = papers().unwrap().into_iter().flat_map(|paper| paper.figures).collect();
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        for file in std::fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
            let name = format!("{}/{stem}", folder.file_name().unwrap().to_string_lossy());
            assert!(stem == "paper" || listed.contains(&name), "{name} is not listed in paper.toml");
        }
    }
}

#[test]
fn a_picture_by_level_needs_levels_with_numbers() {
    let text = GRID.replace("by = \"capacity\"", "by = \"start\"");
    let error = Figure::parse("grid", &text, None).unwrap_err().to_string();
    assert!(error.contains("no number"), "{error}");
}

#[test]
fn replications_that_make_no_sense_are_refused() {
    for (keys, part) in [
        ("least = 2", "at least 3"),
        ("least = 8\nmost = 4\nfull = 8", "at least 8"),
        ("most = 12\nfull = 4", "between 12"),
        ("by = \"nothing\"", "say why no phase matters"),
        ("spread = \"10 ms\"", "belongs to by = \"starts\""),
        ("rate = \"1 Mbit/s\"", "belongs to by = \"trickle\""),
    ] {
        let text = GRID.replace("[scenario]\n", &format!("[replications]\n{keys}\n\n[scenario]\n"));
        let error = Figure::parse("x", &text, None).unwrap_err().to_string();
        assert!(error.contains(part), "{keys}: {error}");
    }
    let error = error("origin = \"paper\"\n", "").1;
    assert!(error.contains("origin") && error.contains("say whose claim it is"), "{error}");
}
