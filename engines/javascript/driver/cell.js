// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// What the host calls. It evaluates the cell itself (no driver frame lies below the user's code) and comes here only
// for what needs JavaScript: showing a value, describing an error, timers.

/// Result text of a value that is neither undefined, a number, a boolean, null nor a string: those the host
/// shows itself. The first character says what follows: j JSON, t text. JSON is the rule, unless `asText`.
function showValue(value, asText) {
  switch (typeof value) {
    case 'bigint': return `t${value}n`;
    case 'symbol': return `t${symbolToString(value)}`;
    case 'function':
      try { return `t${functionToString(value)}`; } catch { return `t${inspect(value, lineOptions)}`; }
  }
  if (asText) return `t${inspect(value, lineOptions)}`;
  try {
    let json;
    try {
      json = jsonStringify(value);
    } catch (error) {
      if (!isErrorLike(error) || !stringIncludes(errorMessage(error), 'BigInt')) throw error;
      json = jsonStringify(value, (_key, item) => (typeof item === 'bigint' ? `${item}n` : item));
    }
    if (json !== undefined && typeof json === 'string') return `j${json}`;
  } catch { /* circular, or a toJSON that fails: shown as text instead */ }
  return `t${inspect(value, lineOptions)}`;
}

/// What import() fails with.
function moduleError(message) {
  const error = new NativeError(message);
  put(error, 'code', 'ERR_MODULE_NOT_FOUND');
  return error;
}

return {
  __proto__: null,
  showValue, describeError, runTimers, runTicks, dropTimers, resetRun, runExitListeners, runBeforeExit, offerUncaught,
  builtinModuleSource, hasBuiltin, moduleError, rewriteImports, builtinNames: arrayJoin(objectKeys(builtinMakers), ' '),
  currentDirectory: () => workingDirectory,
};
