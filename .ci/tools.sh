# What a build needs beside the source: sourced by ./check and ./flowstart. Installs as root, else
# names what is missing.

# The oldest compiler that is promised, from the workspace manifest.
readonly RUST=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
readonly KERNEL_PACKAGES="clang libelf-dev zlib1g-dev pkg-config make"
readonly KERNEL_TOOLS_MISSING="clang, libelf, zlib or pkg-config is missing (on Debian: sudo apt-get install $KERNEL_PACKAGES)"

can_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

install_packages() { # what for, packages...
    printf '== installing %s (%s)\n' "${*:2}" "$1" >&2
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${@:2}"; } >/dev/null 2>&1
}

# A linker is all that most of it needs beside Rust.
need_linker() {
    if command -v cc >/dev/null; then
        return
    fi
    if ! can_install || ! install_packages "Rust needs a linker" gcc libc6-dev; then
        printf 'A linker is missing. On Debian: sudo apt-get install gcc libc6-dev\n' >&2
        exit 2
    fi
}

need_rust() {
    if ! command -v cargo >/dev/null; then
        printf 'Rust is missing: see https://rustup.rs (version %s or later)\n' "$RUST" >&2
        exit 2
    fi
    local have
    have=$(rustc --version | cut -d' ' -f2)
    if [ "$(printf '%s\n%s\n' "$RUST" "${have%%-*}" | sort -V | head -n 1)" != "$RUST" ]; then
        printf 'Rust %s is too old, %s or later is needed: rustup update stable\n' "$have" "$RUST" >&2
        exit 2
    fi
}

readonly BROWSER_MISSING="chromium, node or npm is missing (on Debian: sudo apt-get install chromium nodejs npm)"

browser_is_there() {
    command -v node >/dev/null && command -v npm >/dev/null && command -v "${CHROMIUM:-chromium}" >/dev/null
}

# What opens reports in a browser (crates/report/browser); installs what is missing where it may.
have_browser() {
    browser_is_there && return
    can_install || return
    local packages=(fonts-dejavu-core)
    command -v "${CHROMIUM:-chromium}" >/dev/null || packages+=(chromium)
    command -v node >/dev/null || packages+=(nodejs)
    command -v npm >/dev/null || packages+=(npm)
    install_packages "reports in a browser" --no-install-recommends "${packages[@]}" && browser_is_there
}

kernel_tools_are_there() {
    [ "$(uname -s)" = Linux ] && command -v clang >/dev/null && command -v make >/dev/null &&
        command -v pkg-config >/dev/null && pkg-config --exists libelf zlib
}

# What compiles and loads the programs for the kernel (crates/kernel); installs it where it may.
have_kernel_tools() {
    kernel_tools_are_there && return
    # shellcheck disable=SC2086 # a list of packages
    [ "$(uname -s)" = Linux ] && can_install && install_packages "programs for the kernel" $KERNEL_PACKAGES && kernel_tools_are_there
}

readonly PYTHON_MISSING="Python 3.11 or later with venv is missing (on Debian: sudo apt-get install python3-venv)"

python_is_there() {
    command -v python3 >/dev/null && python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# What the Python package is built and tested with; installs it where it may.
have_python() {
    python_is_there && return
    can_install && install_packages "the Python package" python3 python3-venv && python_is_there
}

readonly TSHARK_MISSING="tshark is missing (on Debian: sudo apt-get install tshark)"

# What reads captures as everybody else does: one test asks it. Installs it where it may.
have_tshark() {
    command -v tshark >/dev/null && return
    can_install && install_packages "what reads captures" --no-install-recommends tshark && command -v tshark >/dev/null
}
