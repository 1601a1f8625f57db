//! Everything that fuzzing has found worth keeping, read again.

use std::path::Path;

use flowstart_entries::ENTRIES;

#[test]
fn nothing_in_the_corpora_makes_what_reads_it_panic() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, entry) in ENTRIES {
        let folder = corpora.join(name);
        let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut count = 0;
        for file in files {
            let file = file.unwrap().path();
            entry(&std::fs::read(&file).unwrap());
            count += 1;
        }
        assert!(count > 0, "there is nothing in {}", folder.display());
    }
}

#[test]
fn every_entry_is_a_fuzz_target() {
    let manifest =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/Cargo.toml")).unwrap();
    for (name, _) in ENTRIES {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "fuzz/Cargo.toml lacks {name}");
    }
    let targets = manifest.matches("path = \"fuzz_targets/").count();
    // Frames are read on Linux only.
    let entries = ENTRIES.len() + usize::from(cfg!(not(target_os = "linux")));
    assert_eq!(targets, entries, "a target without an entry is not replayed here");
}
