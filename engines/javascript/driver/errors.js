// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Errors as text: for inspect (with the trace, the cause and other own properties) and for the reply of a run.

const driverFile = 'sandbox:driver', internalErrorPrototype = InternalError.prototype;

/// The trace the engine or user code left on an error; '' when there is none.
function rawStack(error) {
  if (host.isProxy(error)) return '';
  const descriptor = getOwnPropertyDescriptor(error, 'stack');
  if (descriptor !== undefined) return hasOwn(descriptor, 'value') && typeof descriptor.value === 'string' ? descriptor.value : '';
  try {
    const stack = nativeStack(error);
    return typeof stack === 'string' ? stack : '';
  } catch {
    return '';  // not made by an error constructor
  }
}

// Error.prepareStackTrace and Error.stackTraceLimit are the program's to set, and say what it sees as `error.stack`.
// The frames themselves are noted before, for the report.

const stackAccessors = {
  setPrepare: uncurry(getOwnPropertyDescriptor(Error, 'prepareStackTrace').set),
  setLimit: uncurry(getOwnPropertyDescriptor(Error, 'stackTraceLimit').set),
};
const framesLeast = 10;
let programsPrepare, programsLimit = Error.stackTraceLimit;
let preparedFrames;  // error to the frames it had, made with the first Error.prepareStackTrace

const callSite = (function findCallSite() {
  stackAccessors.setPrepare(NativeError, (_error, sites) => sites);
  const prototype = getPrototypeOf(nativeStack(new NativeError(''))[0]);
  stackAccessors.setPrepare(NativeError, undefined);
  // It would give out functions that nothing else leads to. Node gives none of strict functions.
  method(prototype, 'getFunction', { getFunction() { return undefined; } }.getFunction);
  return {
    functionName: uncurry(prototype.getFunctionName), fileName: uncurry(prototype.getFileName),
    line: uncurry(prototype.getLineNumber), column: uncurry(prototype.getColumnNumber), isNative: uncurry(prototype.isNative),
  };
})();

/// The frames that are the program's: neither those of this driver nor those of what the driver called.
function programsSites(sites) {
  const kept = [];
  for (let i = 0; i < sites.length; ++i) {
    if (callSite.fileName(sites[i]) !== driverFile) { arrayPush(kept, sites[i]); continue; }
    while (kept.length > 0 && callSite.isNative(kept[kept.length - 1])) arrayPop(kept);
  }
  return kept;
}

function prepareStackTrace(error, allSites) {
  const sites = programsSites(allSites);
  let frames = '';
  for (let i = 0; i < sites.length; ++i) {
    const site = sites[i], name = callSite.functionName(site);
    const where = callSite.isNative(site) ? 'native' : `${callSite.fileName(site)}:${callSite.line(site)}:${callSite.column(site)}`;
    frames += `    at ${typeof name === 'string' && name !== '' ? name : '<anonymous>'} (${where})\n`;
  }
  weakMapSet(preparedFrames, error, frames);
  return reflectApply(programsPrepare, NativeError, [error, sites]);
}

/// Whether the program's Error.prepareStackTrace made what the error has as its stack.
function wasPrepared(error) {
  return preparedFrames !== undefined && weakMapGet(preparedFrames, error) !== undefined;
}

const stackSettings = {
  get prepareStackTrace() { return programsPrepare; },
  set prepareStackTrace(value) {
    programsPrepare = value;
    if (typeof value === 'function') preparedFrames ??= new NativeWeakMap();
    stackAccessors.setPrepare(NativeError, typeof value === 'function' ? prepareStackTrace : undefined);
  },
  get stackTraceLimit() { return programsLimit; },
  set stackTraceLimit(value) {
    programsLimit = value;
    stackAccessors.setLimit(NativeError, typeof value === 'number' && value > framesLeast ? value : framesLeast);
  },
};
for (const name of objectKeys(stackSettings)) {
  const { get, set } = getOwnPropertyDescriptor(stackSettings, name);
  defineProperty(Error, name, { __proto__: null, get, set, enumerable: false, configurable: true });
}

/// The frames of an error's trace, as many as the program wants to see.
function userFrames(error) {
  const frames = reportedFrames(error);
  if (typeof programsLimit === 'number' && programsLimit >= framesLeast) return frames;
  const lines = stringSplit(frames, '\n'), limit = typeof programsLimit === 'number' && programsLimit > 0 ? programsLimit : 0;
  return lines.length <= limit ? frames : arrayJoin(arraySlice(lines, 0, limit), '\n');
}

/// The frames of an error's trace, without its header, those of this driver and those of what the driver called. '' when
/// it has none.
function reportedFrames(error) {
  const noted = preparedFrames === undefined || host.isProxy(error) ? undefined : weakMapGet(preparedFrames, error);
  const stack = noted ?? rawStack(error);
  if (stack === '') return '';
  const lines = stringSplit(stack, '\n'), kept = [];
  // Where the run was stopped, or memory ran out, may lie in the libraries of the driver's own realm, which it evaluates.
  const isEngines = isPrototypeInChain(error, internalErrorPrototype);
  for (let i = 0; i < lines.length; ++i) {
    if (!stringStartsWith(lines[i], '    at ')) continue;
    if (!stringIncludes(lines[i], driverFile)) { arrayPush(kept, withoutMark(lines[i])); continue; }
    while (kept.length > 0 && isDrivers(kept[kept.length - 1], isEngines)) arrayPop(kept);
  }
  return arrayJoin(kept, '\n');
}

/// Is a frame right above one of the driver the driver's own doing?
function isDrivers(line, isEngines) {
  return stringEndsWith(line, ' (native)') || (isEngines && stringIncludes(line, ' (<input>:'));
}

/// A frame's file without the mark of its content that the host gives modules: "a.mjs?v=0123456789ab:3:1".
function withoutMark(line) {
  const at = stringLastIndexOf(line, '?v=');
  return at > 0 && line[at + 15] === ':' ? stringSlice(line, 0, at) + stringSlice(line, at + 15) : line;
}

function stackText(error) {
  const head = errorToText(error), frames = userFrames(error);
  return frames === '' ? head : `${head}\n${frames}`;
}

/// As the engine's, and the trace starts with the error's name and message, as programs written for Node expect.
function captureStackTrace(target, boundary) {
  nativeCaptureStackTrace(target, boundary);
  if (wasPrepared(target)) return;
  const descriptor = getOwnPropertyDescriptor(target, 'stack');
  if (descriptor !== undefined && hasOwn(descriptor, 'value') && typeof descriptor.value === 'string') {
    put(target, 'stack', isErrorLike(target) ? stackText(target) : `Error\n${userFrames(target)}`, false);
  }
}
method(Error, 'captureStackTrace', captureStackTrace);

const stackAccessor = {
  get stack() {
    if (!isErrorLike(this) || host.isProxy(this)) return undefined;
    let own;
    try { own = nativeStack(this); } catch { /* not made by an error constructor */ }
    return wasPrepared(this) || (own !== undefined && typeof own !== 'string') ? own : stackText(this);
  },
  set stack(value) { if (isObject(this)) put(this, 'stack', value, false); },
};
defineProperty(Error.prototype, 'stack', {
  __proto__: null, configurable: true, enumerable: false,
  get: getOwnPropertyDescriptor(stackAccessor, 'stack').get, set: getOwnPropertyDescriptor(stackAccessor, 'stack').set,
});

/// A property of an error as text. Getters of the user's error classes are run, unless `quietly`, and may fail.
function readText(error, key, fallback, quietly = false) {
  try {
    const value = quietly ? peek(error, key) : error[key];
    if (value === undefined) return fallback;
    if (typeof value === 'string') return value;
    return isObject(value) ? inspect(value, { depth: 1 }) : formatArgument(value);
  } catch {
    return fallback;
  }
}

const nativeErrors = [
  NativeTypeError, NativeRangeError, NativeSyntaxError, ReferenceError, EvalError, URIError, AggregateError,
  InternalError,
];
const nativeErrorNames = arrayMap(nativeErrors, (type) => type.name);
const nativeErrorPrototypes = arrayMap(nativeErrors, (type) => type.prototype);

/// Which of the language's own errors it is, whatever has become of the properties that say so.
function nativeErrorName(error) {
  for (let i = 0; i < nativeErrorPrototypes.length; ++i) {
    if (isPrototypeInChain(error, nativeErrorPrototypes[i])) return nativeErrorNames[i];
  }
  return 'Error';
}

function errorName(error, quietly = false) {
  const name = readText(error, 'name', '', quietly);
  if (kindOf(error) === 'DOMException') return name === 'Error' ? 'DOMException' : name;
  if (name === '') return constructorName(error) ?? nativeErrorName(error);
  if (name === 'Error') {
    // A subclass that sets no name of its own is still called by its class, as in Node.
    const made = constructorName(error);
    if (made !== null && stringEndsWith(made, 'Error')) return made;
  }
  return name;
}

function errorMessage(error, quietly = false) {
  return readText(error, 'message', '', quietly);
}

function errorToText(error) {
  const name = errorName(error), message = errorMessage(error);
  return message === '' ? name : `${name}: ${message}`;
}

/// The same, as a report shows it.
function reportedHead(error, quietly) {
  const name = shorten(errorName(error, quietly), lineMax), message = shorten(errorMessage(error, quietly), messageMax);
  return message === '' ? name : `${name}: ${message}`;
}

const shownByItself = { __proto__: null, stack: true, message: true, name: true };

/// Header and frames; `keys` (the properties to list) loses those shown here and gains cause and errors.
function formatErrorBase(context, error, name, tag, keys) {
  let head = context.isReport ? reportedHead(error, context.isQuiet) : errorToText(error);
  if (name === null) head = `[${head}: null prototype]`;
  else if (tag !== '' && !stringIncludes(head, tag)) head = `${head} [${tag}]`;
  const own = arraySlice(keys);
  keys.length = 0;
  for (let i = 0; i < own.length; ++i) {
    const key = own[i];
    if (shownByItself[key] && !context.showHidden) {
      const value = peek(error, key);
      if (key === 'stack' || (typeof value === 'string' && stringIncludes(head, shorten(value, key === 'message' && context.isReport ? messageMax : lineMax)))) continue;
    }
    arrayPush(keys, key);
  }
  if (hasOwn(error, 'cause') && !arrayIncludes(keys, 'cause')) arrayPush(keys, 'cause');
  if (hasOwn(error, 'errors') && arrayIsArray(peek(error, 'errors')) && !arrayIncludes(keys, 'errors')) arrayPush(keys, 'errors');
  const frames = userFrames(error);
  let base = frames === '' ? `[${head}]` : `${head}\n${frames}`;
  if (context.indentation > 0) base = stringReplaceAll(base, '\n', `\n${stringRepeat(' ', context.indentation)}`);
  return base;
}

/// Line in `file` where the error came about: the first frame of that file. 0 when there is none.
function lineInFile(frames, file) {
  const lines = stringSplit(frames, '\n');
  for (let i = 0; i < lines.length; ++i) {
    const at = stringIndexOf(lines[i], `${file}:`);
    if (at < 0) continue;
    const line = numberParseInt(stringSlice(lines[i], at + file.length + 1), 10);
    if (line > 0) return line;
  }
  return 0;
}

function isErrorLike(value) {
  if (!isObject(value)) return false;
  const kind = kindOf(value);
  return kind === 'Error' || kind === 'DOMException' || (kind !== 'Proxy' && isPrototypeInChain(value, NativeError.prototype));
}

// The host cuts the texts of an error at these sizes, in bytes. Cut here first, megabytes need not be escaped, sent and
// parsed, for which there may be neither memory nor time.
const lineMax = 8192, messageMax = 65536, linesMax = 500;

function shorten(text, max) {
  return text.length <= max ? text : `${stringSlice(text, 0, max - 64)} … (${text.length - max + 64} more characters)`;
}

/// The lines of `text`, without those in the middle if there are too many.
function shortLines(text) {
  const lines = stringSplit(text, '\n'), kept = [], total = lines.length;
  const head = total > linesMax ? linesMax / 2 : total;
  for (let i = 0; i < head; ++i) arrayPush(kept, shorten(lines[i], lineMax));
  if (total > linesMax) {
    const tail = linesMax - head - 1;
    arrayPush(kept, `  … (${total - head - tail} more lines)`);
    for (let i = total - tail; i < total; ++i) arrayPush(kept, shorten(lines[i], lineMax));
  }
  return kept;
}

/// How a report shows a value. What is left out is what the host would cut. `quietly`: nothing of the user's is run.
function reportContext(quietly) {
  const context = inspectContext(lineOptions);
  context.isReport = true;
  context.isQuiet = quietly;
  context.maxStringLength = lineMax;
  context.keysMax = linesMax;
  context.budget = 1 << 20;
  if (quietly) context.customInspect = false;
  return context;
}

/// The reply's `error` for whatever was thrown, as JSON text. Never throws, whatever the value does when read. `quietly`:
/// the run was told to stop, so nothing of the user's may run any more.
function describeError(thrown, file, quietly) {
  let name = 'Error', message, trace, line = 0;
  try {
    if (isErrorLike(thrown)) {
      name = shorten(errorName(thrown, quietly), lineMax);
      message = shorten(errorMessage(thrown, quietly), messageMax);
      line = lineInFile(reportedFrames(thrown), file);
      trace = formatValue(reportContext(quietly), thrown, 0);
    } else if (typeof thrown === 'string') {
      message = shorten(thrown, messageMax);
      trace = `Uncaught ${quote(message)}`;
    } else {
      message = formatValue(reportContext(quietly), thrown, 0);
      trace = `Uncaught ${message}`;
    }
  } catch {
    // A value that fails while it is looked at (a hostile getter, too deep a stack) is still reported.
    message ??= '<the thrown value could not be shown>';
    trace ??= `${name}: ${message}`;
  }
  // Piece by piece: for objects and arrays the engine's JSON asks for toJSON and runs setters of Array.prototype.
  const lines = arrayMap(shortLines(trace), (text) => jsonStringify(text));
  const head = `"name":${jsonStringify(name)},"message":${jsonStringify(shorten(message, messageMax))}`;
  return `{${head},"traceback":[${arrayJoin(lines, ',')}]${line > 0 ? `,"lineNumber":${line}` : ''}}`;
}
