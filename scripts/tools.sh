# Source this with the name to speak under: finds what every build needs, and `die MESSAGE`. A missing tool is one
# line that says what to install; on Debian and Ubuntu root gets what the distribution has.
_openlink_speaker="${1:-openlink}"
die() { echo "[$_openlink_speaker] $*" >&2; exit 1; }
has_python_headers() {
  python3 -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))'
}

command -v cargo >/dev/null || [ ! -x "$HOME/.cargo/bin/cargo" ] || export PATH="$HOME/.cargo/bin:$PATH"
command -v cargo >/dev/null || die "cargo was not found: install Rust 1.89 or later (https://rustup.rs)"
command -v python3 >/dev/null || die "python3 was not found: install Python 3.10 or later"
packages=()
if ! { command -v cc && command -v c++ && command -v make; } >/dev/null; then packages+=(build-essential); fi
has_python_headers || packages+=(python3-dev)
python3 -c 'import ensurepip' 2>/dev/null || [ -n "${ROS_DISTRO:-}" ] || packages+=(python3-venv)
if [ ${#packages[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    die "missing: ${packages[*]}; on Debian and Ubuntu: sudo apt-get install ${packages[*]}"
  fi
  echo "[$_openlink_speaker] installing ${packages[*]}"
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null ||
    die "apt-get could not install ${packages[*]}"
fi
