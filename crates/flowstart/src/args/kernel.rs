//! Options of `flowstart kernel`.

use clap::Subcommand;

use flowstart_kernel::Algorithm;

const KERNEL_LOAD_EXAMPLES: &str = "\
Examples:
  sudo flowstart kernel load paced_chirping
  sudo flowstart kernel load paced_chirping --param ecn=off --param max_first_gap=500us

It stays loaded until it is unloaded or the machine restarts. The system's default congestion control stays
what it is: choose the new one for a socket (TCP_CONGESTION), a route (`ip route … congctl NAME`) or all
(`sysctl net.ipv4.tcp_congestion_control=NAME`). `flowstart kernel list` has all names and parameters.";

/// `flowstart kernel`.
#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Register an algorithm as a congestion control
    #[command(after_help = KERNEL_LOAD_EXAMPLES)]
    Load {
        /// Name of the algorithm
        #[arg(value_name = "NAME")]
        algorithm: Algorithm,
        /// Set a parameter; may be repeated
        #[arg(long = "param", value_name = "NAME=VALUE")]
        parameters: Vec<String>,
        /// quick_start: device whose packets carry requests and answers; may be repeated, also
        /// later for more devices [default: all that are up]
        #[arg(long = "dev", value_name = "DEVICE")]
        devices: Vec<String>,
        /// quick_start: network namespace of the devices, as `ip netns` knows it
        #[arg(long, value_name = "NAME", requires = "devices")]
        netns: Option<String>,
        /// Print what the kernel says if it refuses
        #[arg(short, long)]
        verbose: bool,
    },
    /// Take an algorithm away; connections that use it keep it until they end
    #[command(after_help = "Example: sudo flowstart kernel unload paced_chirping")]
    Unload {
        /// Names of algorithms [default: all that are loaded]
        #[arg(value_name = "NAME")]
        algorithms: Vec<Algorithm>,
    },
    /// List algorithms for the kernel, their parameters, and what is loaded
    #[command(after_help = "Example: flowstart kernel list --json")]
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Watch Paced Chirping: every chirp, what is read from it, and how starts end, until Ctrl-C
    #[command(after_help = "Example: sudo flowstart kernel watch --json | jq 'select(.event == \"end\")'")]
    Watch {
        /// Print one JSON object per line instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Say what this kernel lacks; exit status 1 if something is missing
    #[command(after_help = "Example: flowstart kernel check")]
    Check {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}
