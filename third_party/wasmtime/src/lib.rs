// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

//! Wasmtime's C API, re-exported so that it ends up in this static library, and `prepare`.

pub use wasmtime_c_api;

mod prepare;
