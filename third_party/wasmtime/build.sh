#!/usr/bin/env bash
# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# build.sh CARGO TARGET_DIR OUT: builds the static library and copies it and the C headers to OUT.
set -euo pipefail
cargo=$1 target=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
export CARGO_TARGET_DIR=$target
# cargo locks the folder only while it builds; another clone must not replace the library before it is copied.
mkdir -p "$target"
exec {lock}>"$target/.sw-lock"
flock "$lock"
# JSON messages name the output folder of the crate that installed the headers.
messages=$("$cargo" build --release --locked --manifest-path "$here/Cargo.toml" \
  --message-format json-render-diagnostics)
headers=$(printf '%s\n' "$messages" | grep '"reason":"build-script-executed"' |
  grep 'wasmtime-c-api-impl' | sed 's/.*"out_dir":"\([^"]*\)".*/\1/' | tail -n 1)
mkdir -p "$out/include"
cp -R "$headers/include/." "$here/include/." "$out/include/"
cp "$target/release/libsw_wasmtime.a" "$out/libsw_wasmtime.a"
touch "$out/include/wasmtime.h"
