// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// A cell is a script, and scripts have no import declarations. Those at its top are written as `await import(…)`, on
// the same lines; the host asks for this only when a cell with the word in it did not compile.

const skippedPattern = /(?:[\s;]|\/\/[^\n]*|\/\*[^]*?\*\/|#![^\n]*|(?:'use strict'|"use strict");?)*/y;
const importPattern = /import\b\s*(?:(?:([\p{ID_Start}$_][\p{ID_Continue}$]*)\s*(,)?\s*)?(?:\*\s*as\s+([\p{ID_Start}$_][\p{ID_Continue}$]*)\s*|\{([^{}]*)\}\s*)?from\s*)?('[^'\\\n]*'|"[^"\\\n]*")(?:\s*with\s*(\{[^{}]*\}))?[ \t]*(?:;|(?=[\n\r])|$)/uy;
const bindingPattern = /^\s*([\p{ID_Start}$_][\p{ID_Continue}$]*|'[^'\\\n]*'|"[^"\\\n]*")(?:\s+as\s+([\p{ID_Start}$_][\p{ID_Continue}$]*))?\s*$/u;

/// "a, b as c" as a pattern for destructuring; undefined when it is not a list of names.
function destructuring(names) {
  const parts = stringSplit(names, ','), out = [];
  for (let i = 0; i < parts.length; ++i) {
    if (stringTrim(parts[i]) === '' && i + 1 === parts.length) break;
    const match = regexpExec(bindingPattern, parts[i]);
    if (match === null) return undefined;
    arrayPush(out, match[2] === undefined ? match[1] : `${match[1]}: ${match[2]}`);
  }
  return arrayJoin(out, ', ');
}

function importStatement(match) {
  const only = match[1], comma = match[2], namespace = match[3], names = match[4], specifier = match[5], attributes = match[6];
  const load = `await import(${specifier}${attributes === undefined ? '' : `, { with: ${attributes} }`})`;
  if (only === undefined && namespace === undefined && names === undefined) return `${load};`;
  if (only !== undefined && (comma === undefined) !== (namespace === undefined && names === undefined)) return undefined;
  const list = names === undefined ? '' : destructuring(names);
  if (list === undefined) return undefined;
  if (namespace !== undefined) {
    return `const ${namespace} = ${load}${only === undefined ? '' : `, { default: ${only} } = ${namespace}`};`;
  }
  return `const { ${only === undefined ? '' : `default: ${only}, `}${list} } = ${load};`;
}

/// The cell with its import declarations rewritten; '' when there are none at its top, or not of a known form.
function rewriteImports(code) {
  let out = '', from = 0, found = false;
  for (;;) {
    skippedPattern.lastIndex = from;
    const skipped = regexpExec(skippedPattern, code)[0];
    out += skipped;
    from += skipped.length;
    importPattern.lastIndex = from;
    const match = regexpExec(importPattern, code);
    if (match === null) break;
    const statement = importStatement(match);
    if (statement === undefined) return '';
    const lines = stringSplit(match[0], '\n').length - 1;
    out += statement + stringRepeat('\n', lines);  // the lines after it keep their numbers
    from += match[0].length;
    found = true;
  }
  return found ? out + stringSlice(code, from) : '';
}
