#!/usr/bin/env bash
# Makes .venv with the pinned tools of the tests that need no ROS (pytest, cflib), .venv/cfclient with Bitcraze's
# graphical client, and sees to the programs and libraries that they need.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Makes the environment $1 from the file $2, once for each content of the file.
environment() {
  local mark="$1/.complete"
  cmp -s "$2" "$mark" && return
  python3 -m venv "$1"
  "$1/bin/pip" install --quiet --disable-pip-version-check --requirement "$2"
  cp "$2" "$mark"
}
environment .venv requirements/test.txt
environment .venv/cfclient requirements/cfclient.txt

missing=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing+=(chromium)
command -v socat >/dev/null || missing+=(socat)
# What Qt loads even without a display.
for library in libEGL.so.1:libegl1 libGL.so.1:libgl1 libxkbcommon.so.0:libxkbcommon0 libdbus-1.so.3:libdbus-1-3 \
  libfontconfig.so.1:libfontconfig1; do
  ldconfig -p | grep -F "${library%%:*}" >/dev/null || missing+=("${library##*:}")
done
if [ ${#missing[@]} -gt 0 ]; then
  [ "$(id -u)" = 0 ] || { echo "missing: ${missing[*]}; run: sudo apt-get install ${missing[*]}" >&2; exit 1; }
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
