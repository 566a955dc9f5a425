#!/usr/bin/env bash
# Makes .venv with the pinned tools of the tests that need no ROS (pytest, cflib), and sees to Chromium.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mark=.venv/.complete
if ! cmp -s requirements/test.txt "$mark"; then
  python3 -m venv .venv
  .venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements/test.txt
  cp requirements/test.txt "$mark"
fi
missing=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing+=(chromium)
command -v socat >/dev/null || missing+=(socat)
if [ ${#missing[@]} -gt 0 ]; then
  [ "$(id -u)" = 0 ] || { echo "missing: ${missing[*]}; run: sudo apt-get install ${missing[*]}" >&2; exit 1; }
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
