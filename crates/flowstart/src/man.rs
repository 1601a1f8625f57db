//! `flowstart man`: manual pages, made from the help.

use std::path::Path;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::output::{Done, Failure, prepare_folder, print, write_file};

/// Prints the page of the program, or writes those of all commands into a folder.
pub(crate) fn man(folder: Option<&Path>) -> Done {
    let mut command = Cli::command();
    command.build();
    let Some(folder) = folder else { return print(&page(command)?) };
    prepare_folder(folder)?;
    write(command, "flowstart", folder)
}

/// The page of a command and those of the commands below it: `flowstart-kernel-load.1`.
fn write(command: clap::Command, name: &str, folder: &Path) -> Done {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        write(below.clone(), &format!("{name}-{}", below.get_name()), folder)?;
    }
    let path = folder.join(format!("{name}.1"));
    write_file(&path, page(command)?.as_bytes())
}

fn page(command: clap::Command) -> Result<String, Failure> {
    let mut text = Vec::new();
    // Writing into memory does not fail.
    clap_mangen::Man::new(command).render(&mut text).map_err(Failure::usage)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
