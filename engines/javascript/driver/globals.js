// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Puts the public objects where programs look for them, and takes away what must not exist.

const nativeAtob = globalThis.atob, nativeBtoa = globalThis.btoa;

class Performance extends EventTarget {
  now() { return host.now() - host.start(); }
  get timeOrigin() { return dateNow() - (host.now() - host.start()); }
  mark(name) { return { name: `${name}`, entryType: 'mark', startTime: this.now(), duration: 0 }; }
  measure(name) { return { name: `${name}`, entryType: 'measure', startTime: 0, duration: this.now() }; }
  toJSON() { return { timeOrigin: this.timeOrigin }; }
}
put(Performance.prototype, symbolToStringTag, 'Performance', false);
const performanceObject = new Performance();

(function installGlobals() {
  for (const name of ['SharedArrayBuffer', 'Atomics', 'performance']) delete globalThis[name];
  const visible = { __proto__: null, console: consoleObject, process: processObject, performance: performanceObject, crypto: webCrypto, fs };
  const functions = {
    __proto__: null, setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, structuredClone, require,
    URL, URLSearchParams, TextEncoder, TextDecoder, Buffer, Event, CustomEvent, EventTarget, AbortController, AbortSignal,
    Crypto, SubtleCrypto, Performance,
  };
  makeProcess();
  for (const name in visible) put(globalThis, name, visible[name], false);
  for (const name in functions) put(globalThis, name, functions[name], false);
  put(globalThis, 'global', globalThis, false);
  put(globalThis, 'module', mainModule, false);
  put(globalThis, 'exports', mainModule.exports, false);
  const paths = { __proto__: null, __dirname: programFolder, __filename: () => joinPath(programFolder(), path.basename(host.fileName())) };
  for (const name in paths) {
    defineProperty(globalThis, name, {
      __proto__: null, configurable: true, enumerable: false, get: paths[name],
      set(value) { put(globalThis, name, value); },
    });
  }
  put(globalThis, symbolToStringTag, 'global', false);
})();
