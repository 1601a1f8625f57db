//! The command line, in types.

use clap::{Parser, Subcommand};

use crate::args::{
    CompareArgs, DocsArgs, DoctorArgs, EmulateArgs, FidelityArgs, KernelCommand, ListArgs, ReproduceArgs, RunArgs,
    ScenarioCommand,
};
use crate::benchmark::BenchmarkArgs;
use crate::explain::ExplainArgs;
use crate::frontier::FrontierArgs;
use crate::new_algorithm::NewAlgorithmArgs;
use crate::quic::{FetchArgs, PathArgs, ServeArgs};
use crate::quick_start::QuickStartArgs;
use crate::router::RouterCommand;

/// Race flow starts over a described path.
#[derive(Debug, Parser)]
#[command(
    name = "flowstart",
    version,
    about,
    long_about = "Race flow starts over a described path: how fast does a new flow get up to speed, and at whose cost in delay?",
    after_help = "Example: flowstart compare -C cubic,hystart++,adaptive_chirping --capacity 100Mbit/s --rtt 20ms",
    max_term_width = 100,
    propagate_version = true
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Race flow starts over one path: a table and a report
    Compare(Box<CompareArgs>),
    /// Race flow starts over a grid of paths: who is fast without delay, and where
    Frontier(Box<FrontierArgs>),
    /// Measure what rate a congestion control can be relied on for, over intervals of every length
    Benchmark(Box<BenchmarkArgs>),
    /// Run scenario files
    Run(RunArgs),
    /// Run programs on two hosts with a described path between them, in real time (Linux)
    Emulate(Box<EmulateArgs>),
    /// Set simulator and this machine's kernel side by side: how far apart are they? (Linux)
    Fidelity(Box<FidelityArgs>),
    /// Reproduce papers: their figures, and a verdict on every claim
    Reproduce(ReproduceArgs),
    /// Explain one chirp: what its delays show, and what is read from them
    ExplainChirp(Box<ExplainArgs>),
    /// Explain what Quick-Start gains: response times of the analytic model, by size and round-trip
    /// time
    ExplainQuickStart(Box<QuickStartArgs>),
    /// Look at a scenario file without running it
    #[command(subcommand)]
    Scenario(ScenarioCommand),
    /// Load flow starts into this machine's Linux kernel, and watch them
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Make devices of this machine Quick-Start routers (Linux)
    #[command(subcommand)]
    Router(RouterCommand),
    /// Serve transfers over QUIC, and looks at the path to here
    Serve(Box<ServeArgs>),
    /// Transfer over QUIC, with any flow start and congestion avoidance
    Fetch(Box<FetchArgs>),
    /// Look at the path to a server: rate, delay, and whether your queue is your own
    Path(Box<PathArgs>),
    /// List flow starts, congestion avoidances, queues and contestants
    List(ListArgs),
    /// Make a crate for a flow start of your own, which races beside those of the project
    NewAlgorithm(NewAlgorithmArgs),
    /// Say what this machine can do, and what is missing
    Doctor(DoctorArgs),
    /// Write the generated part of the documentation
    Docs(DocsArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example: source <(flowstart completions bash)")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one for every command
    #[command(after_help = "Examples:
  flowstart man | man -l -
  flowstart man --out ~/.local/share/man/man1")]
    Man {
        /// Folder for the pages of all commands
        #[arg(long = "out", alias = "dir", value_name = "DIR")]
        dir: Option<std::path::PathBuf>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands in a page: lines of code blocks that begin with the program, and code in text.
    fn commands(page: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut code = false;
        // Code in text may go on in the next line of its paragraph.
        let mut paragraph = String::new();
        for line in page.lines().chain([""]) {
            let fence = line.trim_start().starts_with("```");
            if code && !fence {
                found.push(line.trim_start().trim_start_matches("$ ").to_owned());
            } else if fence || line.is_empty() {
                found.extend(paragraph.split('`').skip(1).step_by(2).map(str::to_owned));
                paragraph.clear();
                code ^= fence;
            } else {
                paragraph.push_str(line.trim());
                paragraph.push(' ');
            }
        }
        let program = |word: &str| ["flowstart", "./flowstart"].contains(&word);
        found.retain(|text| text.split(' ').find(|word| *word != "sudo").is_some_and(program));
        found
    }

    /// The words of a command as a shell has them, up to a pipe, a redirection or a remark. `None`
    /// if it is a pattern rather than a command.
    fn words(command: &str) -> Option<Vec<String>> {
        let text = command.split(" #").next().unwrap_or_default();
        let words = shlex::split(text)?;
        let end =
            words.iter().position(|word| ["|", ">", "&", "&&", ";"].contains(&word.as_str())).unwrap_or(words.len());
        let mut words: Vec<String> = words.into_iter().take(end).filter(|word| word != "sudo").collect();
        *words.first_mut()? = "flowstart".to_owned();
        // An arrow: what it depends on.
        let pattern = |word: &String| word.contains('…') || word.contains("...") || word.ends_with('[') || word == "->";
        (!words.iter().any(pattern)).then_some(words)
    }

    /// "unexpected argument '-1'", with the advice to write `-- -1`, says nothing of what is wrong.
    #[test]
    fn every_option_that_takes_an_amount_can_say_what_is_wrong_with_a_negative_one() {
        use clap::CommandFactory as _;
        let amounts = ["N", "P", "PORT", "RATE", "SHARE", "SIZE", "TIME", "THRESHOLD"];
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            for option in command.get_arguments().filter(|option| !option.is_positional()) {
                let takes = option.get_value_names().is_some_and(|names| amounts.contains(&names[0].as_str()));
                assert!(!takes || option.is_allow_hyphen_values_set(), "{} {option}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn names_that_options_had_before_are_still_read() {
        for (now, before) in [
            ("fetch lab --output a.json --duration 5 --streams 4", "fetch lab --out a.json --time 5 --parallel 4"),
            ("serve --most-connections 9 --peer-connections 3", "serve --connections 9 --per-peer 3"),
            ("explain-quick-start --output gain.svg", "explain-quick-start --out gain.svg"),
            ("reproduce --out pictures", "reproduce --plot pictures"),
            ("man --out pages", "man --dir pages"),
            ("emulate --most-time 5s", "emulate --time-limit 5s"),
            ("fidelity --control bbr --queue codel", "fidelity --controls bbr --queues codel"),
            ("compare --flows 3", "compare --parallel 3"),
            ("benchmark cubic --lasting 9s", "benchmark cubic --duration 9s"),
        ] {
            let [now, before] = [now, before].map(|line| {
                let read = Cli::try_parse_from(words(&format!("flowstart {line}")).unwrap());
                read.map_or_else(|error| panic!("{line}: {error}"), |read| format!("{read:?}"))
            });
            assert_eq!(now, before);
        }
    }

    /// 60 ms were offered.
    #[test]
    fn whoever_leaves_the_unit_of_a_limit_of_time_out_is_offered_seconds() {
        for command in [
            "serve --most-time 60",
            "serve --peer-time 60",
            "serve --memory m.json --memory-lifetime 60",
            "emulate --most-time 60",
            "emulate --ready-within 60",
            "benchmark cubic --lasting 60",
        ] {
            let error = Cli::try_parse_from(words(&format!("flowstart {command}")).unwrap()).unwrap_err();
            assert!(error.to_string().contains("did you mean \"60 s\"?"), "{command}: {error}");
        }
    }

    /// It was --out in two commands, which elsewhere is a folder.
    #[test]
    fn what_is_written_to_a_file_is_called_output_everywhere() {
        use clap::CommandFactory as _;
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            for option in command.get_arguments().filter(|option| option.get_short() == Some('o')) {
                assert_eq!(option.get_long(), Some("output"), "{}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn every_command_of_readme_and_docs_is_understood() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut pages = vec![root.join("README.md"), root.join("ARCHITECTURE.md"), root.join("CONTRIBUTING.md")];
        let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
        // The generated page of all help has synopses, not commands.
        pages.retain(|path| !path.ends_with("command-line.md"));
        let mut wrong = Vec::new();
        let mut count = 0;
        for path in pages {
            for command in commands(&std::fs::read_to_string(&path).unwrap()) {
                let Some(words) = words(&command) else { continue };
                // Names of commands alone are not commands: `flowstart kernel`.
                let named = words.len() <= 3 && words.iter().skip(1).all(|word| !word.starts_with('-'));
                count += 1;
                if let Err(error) = Cli::try_parse_from(&words) {
                    use clap::error::ErrorKind;
                    let asks = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
                    let lacks = matches!(
                        error.kind(),
                        ErrorKind::MissingSubcommand
                            | ErrorKind::MissingRequiredArgument
                            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                    );
                    // A file that is the reader's.
                    let theirs = error.to_string().contains("no such file");
                    if !(asks || theirs || named && lacks) {
                        wrong.push(format!("{}: {command}\n  {}", path.display(), error.render()));
                    }
                }
            }
        }
        assert!(count > 50, "{count} commands were found");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn commands_are_found_where_people_copy_them_from() {
        let page = "Type `flowstart list`, not `cargo`.\n```sh\n$ sudo ./flowstart kernel check   # looks\nls\n```\n";
        assert_eq!(commands(page), ["flowstart list", "sudo ./flowstart kernel check   # looks"]);
        assert_eq!(words("sudo ./flowstart kernel check   # looks").unwrap(), ["flowstart", "kernel", "check"]);
        assert_eq!(words("flowstart list | head").unwrap(), ["flowstart", "list"]);
        assert_eq!(commands("On `flowstart run\nx.toml` and `ls`.\n"), ["flowstart run x.toml"]);
    }
}
