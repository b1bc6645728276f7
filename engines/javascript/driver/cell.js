// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// What the host calls. It evaluates the cell itself (no driver frame lies below the user's code) and comes here only
// for what needs JavaScript: showing a value, describing an error, timers.

// The engine's JSON.stringify keeps an array of what it is in, and runs the setters that user code gave to all arrays or
// objects for their indices.
const usualDepth = 8;

/// Looks at the indices that values of a usual depth need. To list all keys of Object.prototype would write to many
/// pages of memory, which have to be put back after the run.
function hasIndexSetters() {
  if (arrayPrototype.length !== 0) return true;
  for (let i = 0; i < usualDepth; ++i) if (i in objectPrototype) return true;
  return false;
}

/// Integer keys come first.
function hasDeepIndexSetters() {
  const keys = reflectOwnKeys(objectPrototype), code = typeof keys[0] === 'string' ? stringCharCodeAt(keys[0], 0) : 0;
  return code >= 0x30 && code <= 0x39;
}

/// As JSON.stringify, for where that cannot be used. Undefined for what JSON leaves out.
function writeJson(value, key, depth) {
  if (depth > 512) throw new NativeRangeError('too deep for JSON');
  if (isObject(value)) {
    const toJSON = value.toJSON;
    if (typeof toJSON === 'function') value = reflectApply(toJSON, value, [key]);
  }
  if (typeof value === 'bigint') return `"${value}n"`;
  if (!isObject(value)) return jsonStringify(value);
  if (typeof value === 'function') return undefined;
  const parts = [];
  if (arrayIsArray(value)) {
    for (let i = 0; i < value.length; ++i) arrayPush(parts, writeJson(value[i], `${i}`, depth + 1) ?? 'null');
    return `[${arrayJoin(parts, ',')}]`;
  }
  const keys = objectKeys(value);
  for (let i = 0; i < keys.length; ++i) {
    const text = writeJson(value[keys[i]], keys[i], depth + 1);
    if (text !== undefined) arrayPush(parts, `${jsonStringify(keys[i])}:${text}`);
  }
  return `{${arrayJoin(parts, ',')}}`;
}

function valueAsJson(value) {
  if (hasIndexSetters()) return writeJson(value, '', 0);
  try {
    return jsonStringify(value);
  } catch (error) {
    if (hasDeepIndexSetters()) return writeJson(value, '', 0);
    if (!isErrorLike(error) || !stringIncludes(errorMessage(error), 'BigInt')) throw error;
    return jsonStringify(value, (_key, item) => (typeof item === 'bigint' ? `${item}n` : item));
  }
}

/// A list's JSON has two bytes for each element at least.
function isTooLongForJson(value, bytesMax) {
  const kind = kindOf(value), length = kind === 'Array' ? value.length : kind === 'TypedArray' ? typedArrayLength(value) : 0;
  return 2 * length > bytesMax && (isBuffer(value) || peek(value, 'toJSON') === undefined);
}

/// Result text of a value that is neither undefined, a number, a boolean, null nor a string: those the host
/// shows itself. The first character says what follows: j JSON, t text. JSON is the rule, unless `asText`. 'l' alone:
/// what would follow is longer than `bytesMax`.
function showValue(value, asText, bytesMax) {
  switch (typeof value) {
    case 'bigint': return `t${value}n`;
    case 'symbol': return `t${symbolToString(value)}`;
    case 'function':
      try { return `t${functionToString(value)}`; } catch { return `t${inspect(value, lineOptions)}`; }
  }
  if (asText) return `t${inspect(value, lineOptions)}`;
  if (isTooLongForJson(value, bytesMax)) return 'l';
  try {
    const json = valueAsJson(value);
    if (json !== undefined && typeof json === 'string') return `j${json}`;
  } catch { /* circular, or a toJSON that fails: shown as text instead */ }
  return `t${inspect(value, lineOptions)}`;
}

/// What import() fails with; modules of Node that cannot be here have their reason.
function moduleError(message) {
  const name = regexpExec(/^Cannot find module '([^']*)'/, message)?.[1], reason = name === undefined ? undefined : missingModules[builtinName(name)];
  const error = new NativeError(reason === undefined ? message : `Cannot find module '${name}': ${reason}`);
  put(error, 'code', 'ERR_MODULE_NOT_FOUND');
  return error;
}

return {
  __proto__: null,
  showValue, describeError, runTimers, runTicks, dropTimers, resetRun, runExitListeners, runBeforeExit, offerUncaught,
  builtinModuleSource, hasBuiltin, moduleError, rewriteImports, builtinNames: arrayJoin(objectKeys(builtinMakers), ' '),
  currentDirectory: () => workingDirectory, noteDirectory: () => { workingDirectory = host.cwd(); },
};
