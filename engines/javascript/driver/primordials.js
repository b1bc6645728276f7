// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Private copies of the language's own functions, taken before any user code ran. The driver calls these
// and never looks anything up on a prototype or a global that user code can change.
//
// uncurry(f)(self, ...args) is f.call(self, ...args) without the lookup of `call`.

const uncurry = Function.prototype.bind.bind(Function.prototype.call);
const getterOf = (prototype, key) => uncurry(Object.getOwnPropertyDescriptor(prototype, key).get);

const {
  apply: reflectApply, ownKeys: reflectOwnKeys, getPrototypeOf, setPrototypeOf,
  defineProperty, getOwnPropertyDescriptor, deleteProperty,
} = Reflect;
const {
  create: objectCreate, keys: objectKeys, is: objectIs, assign: objectAssign,
} = Object;
const hasOwn = uncurry(Object.prototype.hasOwnProperty);
const isEnumerable = uncurry(Object.prototype.propertyIsEnumerable);
const objectPrototype = Object.prototype, arrayPrototype = Array.prototype;
const functionToString = uncurry(Function.prototype.toString);

const NativeObject = Object, NativeString = String, NativeNumber = Number, NativeBigInt = BigInt;
const NativeMap = Map, NativeSet = Set, NativePromise = Promise, NativeDate = Date;
const NativeRegExp = RegExp, NativeArrayBuffer = ArrayBuffer, NativeUint8Array = Uint8Array, NativeDataView = DataView;
const NativeFloat64Array = Float64Array, NativeWeakMap = WeakMap;
const NativeError = Error, NativeTypeError = TypeError, NativeRangeError = RangeError, NativeSyntaxError = SyntaxError;
const NativeDOMException = DOMException, NativeBoolean = Boolean;
const NativeSymbol = Symbol, nativeCaptureStackTrace = Error.captureStackTrace, nativeStack = getterOf(Error.prototype, 'stack');
const symbolIterator = Symbol.iterator, symbolToStringTag = Symbol.toStringTag, symbolAsyncIterator = Symbol.asyncIterator;
const symbolFor = Symbol.for, symbolToString = uncurry(Symbol.prototype.toString);
const symbolDescription = getterOf(Symbol.prototype, 'description');

const arrayIsArray = Array.isArray, arrayFrom = Array.from;
const arrayPop = uncurry(Array.prototype.pop), arrayShift = uncurry(Array.prototype.shift);
const arrayJoin = uncurry(Array.prototype.join), arrayIndexOf = uncurry(Array.prototype.indexOf);
const arrayIncludes = uncurry(Array.prototype.includes), arraySort = uncurry(Array.prototype.sort), arrayReverse = uncurry(Array.prototype.reverse);

const stringSlice = uncurry(String.prototype.slice), stringIndexOf = uncurry(String.prototype.indexOf);
const stringLastIndexOf = uncurry(String.prototype.lastIndexOf), stringCharCodeAt = uncurry(String.prototype.charCodeAt);
const stringCodePointAt = uncurry(String.prototype.codePointAt);
const stringStartsWith = uncurry(String.prototype.startsWith);
const stringEndsWith = uncurry(String.prototype.endsWith), stringIncludes = uncurry(String.prototype.includes);
const stringRepeat = uncurry(String.prototype.repeat), stringPadStart = uncurry(String.prototype.padStart);
const stringPadEnd = uncurry(String.prototype.padEnd), stringTrim = uncurry(String.prototype.trim);
const stringToLowerCase = uncurry(String.prototype.toLowerCase), stringToUpperCase = uncurry(String.prototype.toUpperCase);
const stringToWellFormed = uncurry(String.prototype.toWellFormed), stringNormalize = uncurry(String.prototype.normalize);
const stringFromCharCode = String.fromCharCode, stringFromCodePoint = String.fromCodePoint;
const stringValueOf = uncurry(String.prototype.valueOf);

const numberValueOf = uncurry(Number.prototype.valueOf), booleanValueOf = uncurry(Boolean.prototype.valueOf);
const bigintValueOf = uncurry(BigInt.prototype.valueOf), symbolValueOf = uncurry(Symbol.prototype.valueOf);
const numberToString = uncurry(Number.prototype.toString), numberToFixed = uncurry(Number.prototype.toFixed);
const numberToPrecision = uncurry(Number.prototype.toPrecision);
const numberIsInteger = Number.isInteger, numberIsSafeInteger = Number.isSafeInteger, numberIsNaN = Number.isNaN;
const numberIsFinite = Number.isFinite;
const numberParseInt = parseInt, numberParseFloat = parseFloat;
const { floor: mathFloor, min: mathMin, max: mathMax, round: mathRound, sqrt: mathSqrt, trunc: mathTrunc, abs: mathAbs } = Math;

const mapGet = uncurry(Map.prototype.get), mapSet = uncurry(Map.prototype.set), mapHas = uncurry(Map.prototype.has);
const mapDelete = uncurry(Map.prototype.delete), mapClear = uncurry(Map.prototype.clear), mapForEach = uncurry(Map.prototype.forEach);
const mapSize = getterOf(Map.prototype, 'size');
const mapKeys = uncurry(Map.prototype.keys), mapNext = uncurry(getPrototypeOf(new Map().keys()).next);
const setHas = uncurry(Set.prototype.has), setAdd = uncurry(Set.prototype.add), setForEach = uncurry(Set.prototype.forEach);
const setSize = getterOf(Set.prototype, 'size');
const setValues = uncurry(Set.prototype.values), setNext = uncurry(getPrototypeOf(new Set().values()).next);
const weakMapGet = uncurry(WeakMap.prototype.get), weakMapSet = uncurry(WeakMap.prototype.set);
const weakRefDeref = uncurry(WeakRef.prototype.deref);

const promiseThen = uncurry(Promise.prototype.then);
const promiseResolve = Promise.resolve.bind(Promise);
const dateNow = Date.now, dateGetTime = uncurry(Date.prototype.getTime), dateToISOString = uncurry(Date.prototype.toISOString);
const regexpExec = uncurry(RegExp.prototype.exec);
const regexpSource = getterOf(RegExp.prototype, 'source');
const regexpFlagLetters = ['d', 'g', 'i', 'm', 's', 'u', 'v', 'y'];
const regexpFlagGetters = [
  getterOf(RegExp.prototype, 'hasIndices'), getterOf(RegExp.prototype, 'global'), getterOf(RegExp.prototype, 'ignoreCase'),
  getterOf(RegExp.prototype, 'multiline'), getterOf(RegExp.prototype, 'dotAll'), getterOf(RegExp.prototype, 'unicode'),
  getterOf(RegExp.prototype, 'unicodeSets'), getterOf(RegExp.prototype, 'sticky'),
];

const typedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
const typedArrayLength = getterOf(typedArrayPrototype, 'length'), typedArrayBuffer = getterOf(typedArrayPrototype, 'buffer');
const typedArrayByteOffset = getterOf(typedArrayPrototype, 'byteOffset');
const typedArrayByteLength = getterOf(typedArrayPrototype, 'byteLength');
const typedArrayTag = getterOf(typedArrayPrototype, symbolToStringTag);
const typedArraySet = uncurry(typedArrayPrototype.set);
const typedArrayFill = uncurry(typedArrayPrototype.fill);
const typedArrayIndexOf = uncurry(typedArrayPrototype.indexOf);
const dataViewBuffer = getterOf(DataView.prototype, 'buffer'), dataViewByteOffset = getterOf(DataView.prototype, 'byteOffset');
const dataViewByteLength = getterOf(DataView.prototype, 'byteLength');
const arrayBufferByteLength = getterOf(ArrayBuffer.prototype, 'byteLength');
const arrayBufferIsView = ArrayBuffer.isView;
const arrayBufferTransfer = uncurry(ArrayBuffer.prototype.transfer);
const uint8ToBase64 = uncurry(Uint8Array.prototype.toBase64), uint8ToHex = uncurry(Uint8Array.prototype.toHex);

const { stringify: jsonStringify, parse: jsonParse } = JSON;

/// Sets a property without running setters that user code put on a prototype.
function put(target, key, value, enumerable = true) {
  defineProperty(target, key, { __proto__: null, value, writable: true, enumerable, configurable: true });
}

/// A function for a public object: not enumerable, named as its key, as built-in methods are.
function method(target, name, fn) {
  defineProperty(fn, 'name', { __proto__: null, value: typeof name === 'symbol' ? `[${symbolDescription(name)}]` : name,
                               configurable: true });
  put(target, name, fn, false);
}

/// `error` without the driver's own frames: the trace starts at whoever called `boundary`.
function atCaller(error, boundary) {
  captureStackTrace(error, boundary);  // errors.js
  return error;
}

/// A TypeError as Node words and codes them.
function typeError(code, message, boundary) {
  const error = new NativeTypeError(message);
  put(error, 'code', code);
  return atCaller(error, boundary);
}

function isObject(value) {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

const newElement = { __proto__: null, value: undefined, writable: true, enumerable: true, configurable: true };

/// Array.prototype.push would run a setter that user code gave to all arrays for that index.
function arrayPush(list, value) {
  newElement.value = value;
  defineProperty(list, list.length, newElement);
  newElement.value = undefined;
}

function arrayUnshift(list, value) {
  arrayPush(list, value);
  for (let i = list.length - 1; i > 0; --i) list[i] = list[i - 1];
  list[0] = value;
}

/// The getter of `flags` would ask the others through the prototype.
function regexpFlags(pattern) {
  let flags = '';
  for (let i = 0; i < regexpFlagLetters.length; ++i) if (regexpFlagGetters[i](pattern)) flags += regexpFlagLetters[i];
  return flags;
}

// `split` and `replaceAll` of strings would ask the separator for methods by Symbol.split and Symbol.replace.

function stringSplit(text, separator) {
  const pieces = [];
  let from = 0;
  for (let at; (at = stringIndexOf(text, separator, from)) >= 0; from = at + separator.length) {
    arrayPush(pieces, stringSlice(text, from, at));
  }
  arrayPush(pieces, stringSlice(text, from));
  return pieces;
}

function stringReplaceAll(text, what, by) {
  return stringIncludes(text, what) ? arrayJoin(stringSplit(text, what), by) : text;
}

/// A copy of some bytes of an array of bytes. ArrayBuffer's own `slice` would ask the buffer for its constructor.
function copyBytes(bytes, from, to) {
  const out = new NativeUint8Array(to - from);
  typedArraySet(out, new NativeUint8Array(typedArrayBuffer(bytes), typedArrayByteOffset(bytes) + from, to - from));
  return out;
}

// Those array methods that ask an array for its constructor are written out: user code may have changed it.

function arraySlice(list, from = 0, to = list.length) {
  const out = [];
  for (let i = from; i < to; ++i) arrayPush(out, list[i]);
  return out;
}

function arrayMap(list, fn) {
  const out = [];
  for (let i = 0; i < list.length; ++i) arrayPush(out, fn(list[i], i));
  return out;
}

function arrayFilter(list, keep) {
  const out = [];
  for (let i = 0; i < list.length; ++i) if (keep(list[i])) arrayPush(out, list[i]);
  return out;
}

function arrayConcat(first, second) {
  const out = arraySlice(first);
  for (let i = 0; i < second.length; ++i) arrayPush(out, second[i]);
  return out;
}

function arrayRemoveAt(list, index) {
  for (let i = index; i + 1 < list.length; ++i) list[i] = list[i + 1];
  arrayPop(list);
}
