//! `flowstart new-algorithm`: a crate for a flow start of one's own.

use std::path::{Path, PathBuf};

use clap::Args;
use flowstart_congestion::{AvoidanceConfig, StartConfig};
use flowstart_race::ALIASES;

use crate::output::{Done, Failure, print};
use crate::session::quoted;

/// Options of `flowstart new-algorithm`.
#[derive(Args, Debug)]
#[command(after_help = "Example: flowstart new-algorithm my_start && cd my_start && cargo run")]
pub(crate) struct NewAlgorithmArgs {
    /// Its name, which is also that of the folder that is made: lower-case letters, digits and
    /// underscores
    pub(crate) name: String,
    /// Where the source of flowstart is: a folder with its Cargo.toml, or the address of a
    /// repository [default: where this program was built from, else the project's repository]
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Option<String>,
    /// Make the folder in here
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) into: PathBuf,
}

/// Files of the crate. `my_start` and `MyStart` in them become the name; `@SOURCE@` is filled in.
/// The project's own tests compile them as they are.
const FILES: [(&str, &str); 4] = [
    ("Cargo.toml", include_str!("../templates/algorithm/manifest.toml")),
    ("src/lib.rs", include_str!("../templates/algorithm/src/lib.rs")),
    ("src/main.rs", include_str!("../templates/algorithm/src/main.rs")),
    ("tests/contract.rs", include_str!("../templates/algorithm/tests/contract.rs")),
];

/// Makes the crate, or nothing.
pub(crate) fn new_algorithm(args: &NewAlgorithmArgs) -> Done {
    let name = args.name.as_str();
    check_name(name)?;
    let source = source(args.source.as_deref())?;
    let folder = args.into.join(name);
    if folder.exists() {
        return Err(Failure::usage(format!("{} is there already; choose another name or folder", folder.display())));
    }
    let made = make(&folder, name, &source);
    if made.is_err() {
        // What was begun is of no use; that it cannot be removed is not what went wrong.
        let _ = std::fs::remove_dir_all(&folder);
    }
    made?;
    print(&format!(
        "{} is ready: the start is in src/lib.rs, what it must keep to in tests/contract.rs.\n\
         cd {} && cargo run    builds it (minutes the first time), and races it beside four others\n",
        folder.display(),
        quoted(&folder.to_string_lossy())
    ))
}

fn make(folder: &Path, name: &str, source: &str) -> Done {
    for (file, template) in FILES {
        let path = folder.join(file);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|error| Failure::file("create", parent, &error))?;
        let text = template.replace("my_start", name).replace("MyStart", &type_name(name)).replace("@SOURCE@", source);
        std::fs::write(&path, text).map_err(|error| Failure::file("write", &path, &error))?;
    }
    Ok(())
}

/// `my_start` as the name of a type: `MyStart`.
fn type_name(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters)
        })
        .collect()
}

/// Keywords, crates and what cargo makes folders for.
const TAKEN: &str = "abstract as async await become box break const continue crate do dyn else enum extern false final \
                     fn for gen if impl in let loop macro match mod move mut override priv pub ref return self start \
                     static struct super trait true try type typeof union unsafe unsized use virtual where while yield \
                     alloc core flowstart proc_macro std test build deps examples incremental";

/// Types that the template uses.
const TYPES: &str = "Ack Box Debug Default Err Exit ExitReason FlowStart Ok Option OwnError Result Some Span \
                     AfterAck StartConfig Window";

/// Devices to Windows, where no folder and no file can have their names, whatever the ending.
const DEVICES: &str = "con prn aux nul com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 \
                       lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9";

/// Longest name: that of a package may be no longer on crates.io.
const LONGEST_NAME: usize = 64;

/// Names that a crate, a type and a contestant can have.
fn check_name(name: &str) -> Done {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    let is_one_of = |words: &str, name: &str| words.split_whitespace().any(|word| word == name);
    let taken = is_one_of(TAKEN, name) || is_one_of(TYPES, &type_name(name));
    if name.len() > LONGEST_NAME {
        return Err(Failure::usage(format!(
            "\"{name}\" has {} letters; the name of a crate and a start has at most {LONGEST_NAME}",
            name.chars().count()
        )));
    }
    if !begins || !name.chars().all(letters) || taken {
        return Err(Failure::usage(format!(
            "\"{name}\" cannot name a crate and a start; use lower-case letters, digits and underscores \
             that are no word of Rust, as in \"my_start\""
        )));
    }
    if is_one_of(DEVICES, name) {
        return Err(Failure::usage(format!(
            "\"{name}\" cannot name a crate: Windows reserves it for a device, so that no folder can have it there; \
             choose another name, as \"my_start\""
        )));
    }
    let kind = match name {
        _ if StartConfig::from_name(name).is_ok() => Some("flow start"),
        _ if AvoidanceConfig::from_name(name).is_ok() => Some("congestion avoidance"),
        _ if ALIASES.iter().any(|(alias, _)| *alias == name) => Some("contestant"),
        _ => None,
    };
    if let Some(kind) = kind {
        return Err(Failure::usage(format!("the {kind} \"{name}\" is part of flowstart; choose another name")));
    }
    Ok(())
}

/// The dependency on flowstart, as the manifest writes it.
fn source(given: Option<&str>) -> Result<String, Failure> {
    let string = |text: &str| serde_json::Value::from(text).to_string();
    if let Some(address) = given.filter(|text| text.contains("://")) {
        return Ok(format!("git = {}", string(address)));
    }
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = match given {
        Some(folder) => {
            let folder = Path::new(folder);
            let inner = folder.join("crates/flowstart");
            if inner.join("Cargo.toml").is_file() { inner } else { folder.to_owned() }
        }
        None if built_from.join("Cargo.toml").is_file() => built_from.to_owned(),
        None => return Ok(format!("git = {}", string(env!("CARGO_PKG_REPOSITORY")))),
    };
    let manifest = folder.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).map_err(|error| Failure::file("read", &manifest, &error))?;
    if !text.lines().any(|line| line.trim() == "name = \"flowstart\"") {
        return Err(Failure::usage(format!("{} is not the manifest of flowstart", manifest.display())));
    }
    let folder = folder.canonicalize().map_err(|error| Failure::file("read", &folder, &error))?;
    Ok(format!("path = {}", string(&folder.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_not_compile_are_refused() {
        let words = "9lives My my-start self cubic+ hystart type gen deps window span flow_start result default";
        let wrong = words.split(' ').chain(["", "a b"]);
        for name in wrong {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("my_start2").is_ok());
        assert_eq!(type_name("my_start2"), "MyStart2");
    }

    /// Cargo makes no package of such a name on Windows, and warns of it elsewhere.
    #[test]
    fn names_that_windows_reserves_are_refused_with_the_reason() {
        for name in "con prn aux nul com1 com9 lpt1 lpt9".split(' ') {
            let (_, said) = check_name(name).unwrap_err().told();
            assert!(said.contains(&format!("\"{name}\"")) && said.contains("Windows reserves it"), "{said}");
        }
        for name in ["console", "nul2", "com10", "lpt", "aux_start"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_crate_is_made_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let args = |name: &str, source: Option<&str>| NewAlgorithmArgs {
            name: name.to_owned(),
            source: source.map(str::to_owned),
            into: folder.path().to_owned(),
        };
        assert!(new_algorithm(&args("mine", Some("/nowhere"))).is_err());
        assert!(!folder.path().join("mine").exists());
        assert!(new_algorithm(&args("mine", None)).is_ok());
        for (file, _) in FILES {
            let text = std::fs::read_to_string(folder.path().join("mine").join(file)).unwrap();
            assert!(!text.contains("my_start") && !text.contains("@SOURCE@"), "{file}");
        }
        let manifest = std::fs::read_to_string(folder.path().join("mine/Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        let level = |of: &toml::Value| of["opt-level"].as_integer();
        let dev = &manifest["profile"]["dev"];
        let packages = dev["package"].as_table().unwrap();
        assert_eq!([level(dev), level(&dev["build-override"]), level(&packages["*"])], [Some(3), Some(0), Some(0)]);
        // A name that no package has is a warning on every build.
        let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
        for package in packages.keys().filter(|name| *name != "*") {
            assert!(lock.contains(&format!("name = \"{package}\"\n")), "{package}");
        }
        for crate_per_packet in ["simulator", "transport", "network", "avoidances", "starts"] {
            assert_eq!(level(&packages[&format!("flowstart-{crate_per_packet}")]), Some(3), "{crate_per_packet}");
        }
        assert!(new_algorithm(&args("mine", None)).is_err(), "what is there stays");
    }
}
