# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# SW_CACHE_DIR: the user's cache folder, shared by all clones: cargo's target folder, ccache, guest packages,
# compiled and baked images. The program and ./dev use the same rule.

if(DEFINED ENV{SANDBOX_WORKERS_CACHE})
  set(SW_CACHE_DIR "$ENV{SANDBOX_WORKERS_CACHE}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(SW_CACHE_DIR "$ENV{XDG_CACHE_HOME}/sandbox-workers")
else()
  set(SW_CACHE_DIR "$ENV{HOME}/.cache/sandbox-workers")
endif()
