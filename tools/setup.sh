#!/usr/bin/env bash
# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# setup.sh STAMP [PACKAGE…]: makes sure that the machine has what a build and a test run need, and then
# touches STAMP. With packages named, looks after those alone and leaves the stamp.
# Exit status: 0 all there, 10 something was installed just now, 1 something is missing (said on stderr).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
stamp=$1
shift
log=$(dirname "$stamp")/setup.log
mkdir -p "$(dirname "$stamp")"

readonly cmake_min=3.25 gcc_min=12 clang_min=14 rust_min=1.95 node_min=18 npm_min=7 python_min=3.9 pip_min=21

say() { printf 'setup: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }
installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# Prints the packages that are wanted and not there.
missing_packages() {
  local package program
  if (($#)); then
    for package in "$@"; do installed "$package" || echo "$package"; done
    return 0
  fi
  while read -r package program; do
    if [[ -z $package || $package == '#'* ]]; then continue; fi
    if [[ -n $program ]]; then
      have "$program" || echo "$package"
    else
      installed "$package" || echo "$package"
    fi
  done <"$here/debian-packages.txt"
  # Debian ships pip apart from python3, and a python3 from elsewhere brings its own.
  if ! have python3 || ! python3 -c 'import pip' 2>/dev/null; then echo python3-pip; fi
}

apt() { DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 "$@" >>"$log" 2>&1; }

install_packages() {
  if [[ $(id -u) != 0 ]]; then
    say "Debian packages are missing; run this, then try again:"
    printf '  sudo apt-get update && sudo apt-get install -y --no-install-recommends %s\n' "$*" >&2
    return 1
  fi
  say "installing $# Debian packages: $*"
  : >"$log"
  # On a new machine the package lists were never fetched; on an old one they may name files that are gone.
  if ! apt-cache show "$@" >/dev/null 2>&1; then apt update || true; fi
  if ! apt install --no-install-recommends "$@"; then
    apt update || true
    if ! apt install --no-install-recommends "$@"; then
      tail -n 15 "$log" >&2
      say "apt-get install failed (see $log)"
      return 1
    fi
  fi
}

problems=0
# check NAME FOUND MINIMUM HOW-TO-GET-IT
check() {
  if [[ -z $2 ]]; then
    say "$1 is missing (version $3 or newer is required): $4"
  elif ! at_least "$2" "$3"; then
    say "$1 is $2, but $3 or newer is required: $4"
  else
    return 0
  fi
  problems=1
}

check_versions() {
  local rust_how cxx
  if have rustup; then rust_how="run 'rustup update stable && rustup default stable'"
  else rust_how="install it with rustup (https://rustup.rs)"; fi
  check cmake "$(cmake --version 2>/dev/null | sed -n '1s/.* //p')" $cmake_min "Debian 12 or newer has it"
  cxx=${CXX:-c++}
  if "$cxx" --version 2>/dev/null | grep -q clang; then
    check "$cxx (clang)" "$("$cxx" -dumpversion)" $clang_min "set CXX to a newer compiler"
  else
    check "$cxx (g++)" "$("$cxx" -dumpfullversion 2>/dev/null)" $gcc_min "set CXX to a newer compiler"
  fi
  check rustc "$(rustc --version 2>/dev/null | cut -d ' ' -f 2)" $rust_min "$rust_how"
  check cargo "$(cargo --version 2>/dev/null | cut -d ' ' -f 2)" $rust_min "$rust_how"
  check node "$(node --version 2>/dev/null | tr -d v)" $node_min "apt-get install nodejs (Debian 12 or newer)"
  check npm "$(npm --version 2>/dev/null)" $npm_min "apt-get install npm (Debian 12 or newer)"
  check python3 "$(python3 -c 'import platform; print(platform.python_version())' 2>/dev/null)" $python_min \
    "apt-get install python3 (Debian 12 or newer)"
  check pip "$(python3 -c 'import pip; print(pip.__version__)' 2>/dev/null)" $pip_min "apt-get install python3-pip"
}

status=0
if have dpkg-query && have apt-get; then
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]})); then
    if install_packages "${missing[@]}"; then status=10; else problems=1; fi
  fi
elif (($# == 0)); then
  say "no apt-get here: assuming that the libraries of $here/debian-packages.txt are installed"
fi
if (($# == 0)); then check_versions; fi
if ((problems)); then exit 1; fi
if (($#)); then exit $status; fi
touch "$stamp"
exit $status
