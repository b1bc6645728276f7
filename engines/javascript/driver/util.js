// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// node:util, node:assert and the small modules around them.

function isDeepEqual(a, b, strict, seen = new NativeMap()) {
  if (strict ? objectIs(a, b) : (a === b || (a !== a && b !== b))) return true;
  if (!isObject(a) || !isObject(b)) return strict ? false : (!isObject(a) && !isObject(b) && a == b);  // eslint-disable-line eqeqeq
  if (typeof a === 'function' || typeof b === 'function') return false;
  const kind = kindOf(a);
  if (kind !== kindOf(b)) return false;
  if (strict && getPrototypeOf(a) !== getPrototypeOf(b)) return false;
  if (mapGet(seen, a) === b) return true;
  mapSet(seen, a, b);
  switch (kind) {
    case 'Date': if (!objectIs(dateGetTime(a), dateGetTime(b))) return false; break;
    case 'RegExp': if (regexpSource(a) !== regexpSource(b) || regexpFlags(a) !== regexpFlags(b) || a.lastIndex !== b.lastIndex) return false; break;
    case 'Error': if (a.message !== b.message || a.name !== b.name || !isDeepEqual(a.cause, b.cause, strict, seen)) return false; break;
    case 'Number': if (!objectIs(numberValueOf(a), numberValueOf(b))) return false; break;
    case 'String': if (stringValueOf(a) !== stringValueOf(b)) return false; break;
    case 'Boolean': if (booleanValueOf(a) !== booleanValueOf(b)) return false; break;
    case 'BigInt': if (bigintValueOf(a) !== bigintValueOf(b)) return false; break;
    case 'Symbol': if (symbolValueOf(a) !== symbolValueOf(b)) return false; break;
    case 'ArrayBuffer': case 'DataView': return compareBytes(a, b) === 0;
    case 'TypedArray':
      if (typedArrayTag(a) !== typedArrayTag(b) || typedArrayLength(a) !== typedArrayLength(b)) return false;
      for (let i = 0; i < typedArrayLength(a); ++i) if (strict ? !objectIs(a[i], b[i]) : a[i] !== b[i]) return false;
      break;
    case 'Set': {
      if (setSize(a) !== setSize(b)) return false;
      const left = [];
      setForEach(b, (item) => arrayPush(left, item));
      let same = true;
      setForEach(a, (item) => {
        if (!same) return;
        const at = indexWhere(left, (other) => isDeepEqual(item, other, strict, seen));
        if (at < 0) same = false;
        else arrayRemoveAt(left, at);
      });
      if (!same) return false;
      break;
    }
    case 'Map': {
      if (mapSize(a) !== mapSize(b)) return false;
      const left = [];
      mapForEach(b, (value, key) => arrayPush(left, [key, value]));
      let same = true;
      mapForEach(a, (value, key) => {
        if (!same) return;
        const at = indexWhere(left, (pair) => isDeepEqual(key, pair[0], strict, seen) && isDeepEqual(value, pair[1], strict, seen));
        if (at < 0) same = false;
        else arrayRemoveAt(left, at);
      });
      if (!same) return false;
      break;
    }
    case 'WeakMap': case 'WeakSet': case 'Promise': return false;
    case 'Array': if (a.length !== b.length) return false; break;
  }
  if (kind === 'TypedArray') return true;
  const own = (object) => arrayFilter(reflectOwnKeys(object), (key) => isEnumerable(object, key) && (strict || typeof key === 'string'));
  const keys = own(a);
  if (keys.length !== own(b).length) return false;
  for (let i = 0; i < keys.length; ++i) {
    if (!hasOwn(b, keys[i]) || !isEnumerable(b, keys[i]) || !isDeepEqual(a[keys[i]], b[keys[i]], strict, seen)) return false;
  }
  return true;
}

function indexWhere(list, matches) {
  for (let i = 0; i < list.length; ++i) if (matches(list[i])) return i;
  return -1;
}

const promisifyCustom = symbolFor('nodejs.util.promisify.custom');
const kindIs = (name) => (value) => isObject(value) && kindOf(value) === name;

const util = {
  inspect,
  format(...args) { return format(args); },
  formatWithOptions(_options, ...args) { return format(args); },
  promisify(original) {
    if (typeof original !== 'function') throw typeError('ERR_INVALID_ARG_TYPE', `The "original" argument must be of type function. Received ${received(original)}`, util.promisify);
    if (original[promisifyCustom] !== undefined) return original[promisifyCustom];
    return function (...args) {
      return new NativePromise((resolve, reject) => {
        arrayPush(args, (error, value) => { if (error !== null && error !== undefined) reject(error); else resolve(value); });
        reflectApply(original, this, args);
      });
    };
  },
  callbackify(original) {
    return function (...args) {
      const done = arrayPop(args);
      promiseThen(promiseResolve(reflectApply(original, this, args)),
                  (value) => nextTick(done, null, value), (error) => nextTick(done, error));
    };
  },
  isDeepStrictEqual(a, b) { return isDeepEqual(a, b, true); },
  inherits(child, parent) {
    put(child, 'super_', parent);
    setPrototypeOf(child.prototype, parent.prototype);
  },
  deprecate(fn, message, code) {
    let warned = false;
    return function (...args) {
      if (!warned) {
        warned = true;
        printLine(2, `(node) ${code ? `[${code}] ` : ''}DeprecationWarning: ${message}`);
      }
      return reflectApply(fn, this, args);
    };
  },
  debuglog() { return () => {}; },
  stripVTControlCharacters(text) {
    checkString(text, 'str', util.stripVTControlCharacters);
    const pattern = /\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))/g;
    let out = '', from = 0, match;
    while ((match = regexpExec(pattern, text)) !== null) { out += stringSlice(text, from, match.index); from = match.index + match[0].length; }
    return out + stringSlice(text, from);
  },
  toUSVString(text) { return usv(text); },
  isArray: arrayIsArray,
  types: {
    isProxy: (value) => isObject(value) && host.isProxy(value), isDate: kindIs('Date'), isRegExp: kindIs('RegExp'), isMap: kindIs('Map'),
    isSet: kindIs('Set'), isWeakMap: kindIs('WeakMap'), isWeakSet: kindIs('WeakSet'), isPromise: kindIs('Promise'),
    isNativeError: kindIs('Error'), isArrayBuffer: kindIs('ArrayBuffer'), isAnyArrayBuffer: kindIs('ArrayBuffer'),
    isDataView: kindIs('DataView'), isTypedArray: kindIs('TypedArray'), isArrayBufferView: isView, isGeneratorObject: kindIs('Generator'),
    isUint8Array: (value) => isObject(value) && typedArrayTag(value) === 'Uint8Array',
    isAsyncFunction: (value) => typeof value === 'function' && functionTypes[host.classId(value)] === 'AsyncFunction',
    isGeneratorFunction: (value) => typeof value === 'function' && functionTypes[host.classId(value)] === 'GeneratorFunction',
    isBoxedPrimitive: (value) => isObject(value) && arrayIncludes(['Number', 'String', 'Boolean', 'Symbol', 'BigInt'], kindOf(value)),
  },
  TextEncoder, TextDecoder,
};
put(util.promisify, 'custom', promisifyCustom);
put(setTimeout, promisifyCustom, (ms, value) => new NativePromise((resolve) => setTimeout(() => resolve(value), ms)), false);
put(setImmediate, promisifyCustom, (value) => new NativePromise((resolve) => setImmediate(() => resolve(value))), false);

// ---- assert -----------------------------------------------------------------------------------------------

class AssertionError extends Error {
  constructor(options) {
    super(options.message ?? `${inspect(options.actual)} ${options.operator} ${inspect(options.expected)}`);
    put(this, 'name', 'AssertionError', false);
    put(this, 'code', 'ERR_ASSERTION');
    put(this, 'generatedMessage', options.message === undefined);
    put(this, 'actual', options.actual);
    put(this, 'expected', options.expected);
    put(this, 'operator', options.operator);
  }
}

function failAssertion(actual, expected, message, operator, words, boundary) {
  if (isErrorLike(message)) throw message;
  const text = message ?? (typeof words === 'string' ? words : undefined);
  const error = new AssertionError({ actual, expected, operator, message: text });
  put(error, 'generatedMessage', message === undefined);
  throw atCaller(error, boundary);
}

const versus = (title, a, b) => `${title}\n\n${inspect(a)} !== ${inspect(b)}\n`;

function assert(value, message) {
  if (!value) failAssertion(value, true, message, '==', arguments.length === 0 ? 'No value argument passed to `assert.ok()`' : 'The expression evaluated to a falsy value', assert);
}

function matchesExpectation(error, expected, message, operator, boundary) {
  if (expected === undefined) return;
  if (typeof expected === 'function') {
    if (expected.prototype !== undefined && error instanceof expected) return;
    if (isPrototypeInChain(expected, NativeError) || expected === NativeError) throw error;
    if (reflectApply(expected, {}, [error]) === true) return;
    failAssertion(error, expected, message, operator, `The ${quote(functionName(expected))} validation function is expected to return "true"`, boundary);
  }
  if (kindOf(expected) === 'RegExp') {
    if (regexpExec(expected, `${error}`) !== null) return;
    failAssertion(error, expected, message, operator, `The input did not match the regular expression ${inspect(expected)}. Input:\n\n${inspect(`${error}`)}\n`, boundary);
  }
  const keys = objectKeys(expected);
  if (isErrorLike(expected)) { arrayPush(keys, 'name'); arrayPush(keys, 'message'); }
  for (let i = 0; i < keys.length; ++i) {
    const want = expected[keys[i]], have = error[keys[i]];
    if (isObject(want) && kindOf(want) === 'RegExp' && typeof have === 'string' && regexpExec(want, have) !== null) continue;
    if (!isDeepEqual(have, want, true)) failAssertion(error, expected, message, operator, versus(`Expected values to be strictly deep-equal (${keys[i]}):`, have, want), boundary);
  }
}

const assertMethods = {
  ok(value, message) { if (!value) failAssertion(value, true, message, '==', 'The expression evaluated to a falsy value', assertMethods.ok); },
  equal(a, b, message) { if (!(a == b || (a !== a && b !== b))) failAssertion(a, b, message, '==', `${inspect(a)} == ${inspect(b)}`, assertMethods.equal); },  // eslint-disable-line eqeqeq
  notEqual(a, b, message) { if (a == b) failAssertion(a, b, message, '!=', `${inspect(a)} != ${inspect(b)}`, assertMethods.notEqual); },  // eslint-disable-line eqeqeq
  strictEqual(a, b, message) { if (!objectIs(a, b)) failAssertion(a, b, message, 'strictEqual', versus('Expected values to be strictly equal:', a, b), assertMethods.strictEqual); },
  notStrictEqual(a, b, message) { if (objectIs(a, b)) failAssertion(a, b, message, 'notStrictEqual', `Expected "actual" to be strictly unequal to: ${inspect(b)}`, assertMethods.notStrictEqual); },
  deepEqual(a, b, message) { if (!isDeepEqual(a, b, false)) failAssertion(a, b, message, 'deepEqual', versus('Expected values to be loosely deep-equal:', a, b), assertMethods.deepEqual); },
  deepStrictEqual(a, b, message) { if (!isDeepEqual(a, b, true)) failAssertion(a, b, message, 'deepStrictEqual', versus('Expected values to be strictly deep-equal:', a, b), assertMethods.deepStrictEqual); },
  notDeepEqual(a, b, message) { if (isDeepEqual(a, b, false)) failAssertion(a, b, message, 'notDeepEqual', `Expected "actual" not to be loosely deep-equal to: ${inspect(b)}`, assertMethods.notDeepEqual); },
  notDeepStrictEqual(a, b, message) { if (isDeepEqual(a, b, true)) failAssertion(a, b, message, 'notDeepStrictEqual', `Expected "actual" not to be strictly deep-equal to: ${inspect(b)}`, assertMethods.notDeepStrictEqual); },
  match(text, pattern, message) { if (regexpExec(pattern, text) === null) failAssertion(text, pattern, message, 'match', `The input did not match the regular expression ${inspect(pattern)}. Input:\n\n${inspect(text)}\n`, assertMethods.match); },
  doesNotMatch(text, pattern, message) { if (regexpExec(pattern, text) !== null) failAssertion(text, pattern, message, 'doesNotMatch', `The input was expected to not match the regular expression ${inspect(pattern)}. Input:\n\n${inspect(text)}\n`, assertMethods.doesNotMatch); },
  fail(message = 'Failed') { failAssertion(undefined, undefined, message, 'fail', undefined, assertMethods.fail); },
  ifError(value) { if (value !== null && value !== undefined) failAssertion(value, null, undefined, 'ifError', `ifError got unwanted exception: ${isErrorLike(value) ? errorMessage(value) : inspect(value)}`, assertMethods.ifError); },
  throws(fn, expected, message) {
    if (typeof expected === 'string') { message = expected; expected = undefined; }
    let error, threw = false;
    try { fn(); } catch (caught) { error = caught; threw = true; }
    if (!threw) failAssertion(undefined, expected, message, 'throws', 'Missing expected exception.', assertMethods.throws);
    matchesExpectation(error, expected, message, 'throws', assertMethods.throws);
  },
  doesNotThrow(fn, message) {
    try { fn(); } catch (error) { failAssertion(error, undefined, typeof message === 'string' ? message : undefined, 'doesNotThrow', `Got unwanted exception.\nActual message: "${isErrorLike(error) ? errorMessage(error) : inspect(error)}"`, assertMethods.doesNotThrow); }
  },
  async rejects(promise, expected, message) {
    if (typeof expected === 'string') { message = expected; expected = undefined; }
    let error, threw = false;
    try { await (typeof promise === 'function' ? promise() : promise); } catch (caught) { error = caught; threw = true; }
    if (!threw) failAssertion(undefined, expected, message, 'rejects', 'Missing expected rejection.', assertMethods.rejects);
    matchesExpectation(error, expected, message, 'rejects', assertMethods.rejects);
  },
  async doesNotReject(promise, message) {
    try { await (typeof promise === 'function' ? promise() : promise); } catch (error) { failAssertion(error, undefined, message, 'doesNotReject', 'Got unwanted rejection.', assertMethods.doesNotReject); }
  },
  AssertionError,
};
objectAssign(assert, assertMethods);
function strict(value, message) { if (!value) failAssertion(value, true, message, '==', 'The expression evaluated to a falsy value', strict); }
objectAssign(strict, assertMethods, {
  equal: assertMethods.strictEqual, notEqual: assertMethods.notStrictEqual,
  deepEqual: assertMethods.deepStrictEqual, notDeepEqual: assertMethods.notDeepStrictEqual,
});
put(strict, 'strict', strict);
put(assert, 'strict', strict);
