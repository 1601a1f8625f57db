//! Compiles the eBPF programs with clang, and their arithmetic once more for this machine, where
//! tests set it against Rust.

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    #[cfg(feature = "ebpf")]
    ebpf::compile();
}

#[cfg(feature = "ebpf")]
mod ebpf {
    use std::env;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    const PROGRAMS: [&str; 6] =
        ["fs_chirp", "fs_dctcp", "fs_quick_start", "fs_router", "fs_scalable", "fs_slow_start_reno"];

    pub(crate) fn compile() {
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let headers = env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
        for program in PROGRAMS {
            let source = format!("bpf/{program}.bpf.c");
            clang(&source, &out.join(format!("{program}.bpf.o")), &PathBuf::from(&headers));
        }
        cc::Build::new().file("bpf/arithmetic.c").include("bpf").warnings_into_errors(true).compile("fs_arithmetic");
    }

    fn clang(source: &str, object: &Path, headers: &Path) {
        let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
        let status = Command::new(&clang)
            // BTF comes with -g; version 3 of the instruction set is in every kernel since 5.1.
            .args([
                "-g",
                "-O2",
                "-target",
                "bpf",
                "-mcpu=v3",
                "-Wall",
                "-Wextra",
                "-Wno-unused-parameter",
                "-Werror",
                "-Ibpf",
                "-I",
            ])
            .arg(headers)
            .args(["-c", source, "-o"])
            .arg(object)
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => panic!("clang could not compile {source}: {status}"),
            Err(error) => panic!(
                "{} could not be run ({error}). On Debian: apt-get install clang libelf-dev zlib1g-dev pkg-config",
                clang.to_string_lossy()
            ),
        }
    }
}
