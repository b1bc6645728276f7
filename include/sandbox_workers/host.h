// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sandboxes for untrusted code: all that a program needs which runs it. docs/embedding.md.

#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/host/files.h"
#include "sandbox_workers/host/host.h"
#include "sandbox_workers/host/input_stream.h"
#include "sandbox_workers/host/sandbox.h"
#include "sandbox_workers/host/workspace_folder.h"
