// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// For the tests of engines. Nothing in here belongs in a production program.

#include "sandbox_workers/testing/conformance.h"
#include "sandbox_workers/testing/test_state.h"
