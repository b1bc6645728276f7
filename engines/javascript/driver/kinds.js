// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// What an object really is, told by the engine's class number: no trap runs, no Symbol.toStringTag lies.

const kindNames = objectCreate(null);
(function learnKinds() {
  const learn = (name, sample) => { kindNames[host.classId(sample)] = name; };
  learn('Object', {});
  learn('Array', []);
  learn('Error', new Error(''));
  learn('DOMException', new DOMException(''));
  learn('Number', new Number(0));
  learn('String', new String(''));
  learn('Boolean', new Boolean(false));
  learn('Symbol', Object(Symbol()));
  learn('BigInt', Object(1n));
  learn('Arguments', (function () { return arguments; })());
  learn('Arguments', new Function('a', 'return arguments')(1));  // a sloppy function's are another class
  learn('Date', new Date(0));
  learn('RegExp', /a/);
  learn('ArrayBuffer', new ArrayBuffer(0));
  for (const type of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array,
                      BigInt64Array, BigUint64Array, Float16Array, Float32Array, Float64Array]) {
    learn('TypedArray', new type(0));
  }
  learn('DataView', new DataView(new ArrayBuffer(0)));
  learn('Map', new Map());
  learn('Set', new Set());
  learn('WeakMap', new WeakMap());
  learn('WeakSet', new WeakSet());
  learn('WeakRef', new WeakRef({}));
  learn('FinalizationRegistry', new FinalizationRegistry(() => {}));
  learn('Promise', Promise.resolve());
  learn('Proxy', new Proxy({}, {}));
  learn('Generator', (function* () {})());
  learn('AsyncGenerator', (async function* () {})());
})();

/// One of the names above, 'Function' for anything callable that is not a proxy, or 'Object'.
function kindOf(value) {
  const kind = kindNames[host.classId(value)];
  if (kind !== undefined) return kind;
  return typeof value === 'function' ? 'Function' : 'Object';
}

function isView(value) {
  return isObject(value) && arrayBufferIsView(value);
}

/// The bytes under an ArrayBuffer or a view of one; null for anything else.
function bytesOf(value) {
  if (!isObject(value)) return null;
  if (arrayBufferIsView(value)) {
    if (typedArrayTag(value) === undefined) {
      return new NativeUint8Array(dataViewBuffer(value), dataViewByteOffset(value), dataViewByteLength(value));
    }
    return new NativeUint8Array(typedArrayBuffer(value), typedArrayByteOffset(value), typedArrayByteLength(value));
  }
  return kindOf(value) === 'ArrayBuffer' ? new NativeUint8Array(value) : null;
}
