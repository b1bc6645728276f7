# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0

# The last thing of a boot: the libraries that are to cost nothing in a run. `modules` is what the manifest says.
modules.each { |name| require name }
$LOAD_PATH.push("/workspace")
