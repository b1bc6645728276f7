// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// What the suite expects of its host, as far as a program in the sandbox can have it: there is one realm and one thread.
var print = console.log;
var $262 = {
  global: globalThis,
  evalScript: (source) => (0, eval)(source),
  detachArrayBuffer: (buffer) => { buffer.transfer(); },
  gc: () => { throw new Error("the sandbox collects when it wants"); },
  createRealm: () => { throw new Error("the sandbox has one realm"); },
};
