//! Cleaning up after this process when it can no longer do so itself.
//!
//! A process that is killed (SIGKILL) leaves names in `/run/netns`, a hosts file, and the programs
//! that it or its programs started. So every world has a guard: a shell that waits until the other
//! end of its standard input is closed, which happens however the process ends, and then ends and
//! removes what is left. It lives as long as the world, and changes nothing unless it is needed.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::names::{GUARD, WorldName};

/// Reads the numbers of namespaces, one per line. After "done" there is nothing to do. At the end
/// of the input it ends the programs in those namespaces, some of which may just start others, and
/// removes names ($1/$2-*) and hosts files ($3/$2-hosts-*). Other guards, of emulations within this
/// one, have to do the same.
const SCRIPT: &str = r#"
known=
while read -r line; do
    [ "$line" = done ] && exit 0
    known="$known net:[$line] "
done
end() {
    ls -l /proc/[0-9]*/ns/net | while read -r line; do
        case "$known" in *" net:${line##*net:} "*)
            process=${line##*/proc/}
            process=${process%%/*}
            tr '\0' '\n' <"/proc/$process/cmdline" | grep -qx "$0" || kill -9 "$process";;
        esac
    done
}
end
for name in "$1/$2"-*; do
    [ -e "$name" ] || continue
    umount -l "$name"
    rm -f "$name"
done
rm -f "$3/$2"-hosts-*
end
end
"#;

/// Cleans up after the process if that is killed; not needed any more when it is dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    shell: Child,
    input: Option<ChildStdin>,
}

impl Guard {
    /// For what has this name. `None` where there is no shell: then `clean` finds what is left.
    pub(crate) fn start(world: &WorldName, folder: &str) -> Option<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, GUARD, folder, world.text()]).arg(std::env::temp_dir());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Not for the guard: what the terminal sends to the programs in front.
        let mut shell = command.current_dir("/").process_group(0).spawn().ok()?;
        let input = shell.stdin.take();
        Some(Self { shell, input })
    }

    /// Programs in the namespace with this number end with the process.
    pub(crate) fn watch(&mut self, namespace: u64) {
        if let Some(input) = &mut self.input {
            // Without a guard there is still `clean`.
            let _ = writeln!(input, "{namespace}");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut input) = self.input.take() {
            let _ = input.write_all(b"done\n");
        }
        let _ = self.shell.wait();
    }
}
