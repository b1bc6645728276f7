// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// console: output goes to descriptors 1 and 2 of the sandbox, one write per call.

let groupIndent = '';
const counters = new NativeMap(), stopwatches = new NativeMap();

function printLine(fd, text) {
  if (groupIndent !== '') {
    text = groupIndent + (stringIncludes(text, '\n') ? stringReplaceAll(text, '\n', `\n${groupIndent}`) : text);
  }
  host.print(fd, text);
}

function label(name) {
  return name === undefined ? 'default' : `${name}`;
}

function elapsedText(ms) {
  if (ms >= 3600000) {
    const minutes = mathFloor(ms / 60000);
    return `${mathFloor(minutes / 60)}:${stringPadStart(`${minutes % 60}`, 2, '0')}:${stringPadStart(`${mathFloor(ms / 1000) % 60}`, 2, '0')} (h:mm:ss)`;
  }
  if (ms >= 60000) return `${mathFloor(ms / 60000)}:${stringPadStart(numberToFixed((ms / 1000) % 60, 3), 6, '0')} (m:ss.mmm)`;
  if (ms >= 1000) return `${numberToFixed(ms / 1000, 3)}s`;
  return `${+numberToFixed(ms, 3)}ms`;
}

function stopwatch(name, method) {
  const started = mapGet(stopwatches, name);
  if (started === undefined) {
    printLine(2, `Warning: No such label '${name}' for console.${method}()`);
    return undefined;
  }
  return elapsedText(host.now() - started);
}

const consoleObject = {};
const consoleMethods = {
  __proto__: null,
  log(...args) { printLine(1, format(args)); },
  info(...args) { printLine(1, format(args)); },
  debug(...args) { printLine(1, format(args)); },
  warn(...args) { printLine(2, format(args)); },
  error(...args) { printLine(2, format(args)); },
  dir(value, options) {
    printLine(1, inspect(value, { customInspect: false, breakLength: 80, ...options }));
  },
  dirxml(...args) { printLine(1, format(args)); },
  trace(...args) {
    const marker = new NativeError('');
    captureStackTrace(marker, consoleMethods.trace);
    const frames = userFrames(marker), text = format(args);
    printLine(2, `Trace${text === '' ? '' : `: ${text}`}${frames === '' ? '' : `\n${frames}`}`);
  },
  assert(condition, ...args) {
    if (condition) return;
    if (typeof args[0] === 'string') args[0] = `Assertion failed: ${args[0]}`;
    else arrayUnshift(args, args.length === 0 ? 'Assertion failed' : 'Assertion failed:');
    printLine(2, format(args));
  },
  group(...args) {
    if (args.length > 0) printLine(1, format(args));
    groupIndent += '  ';
  },
  groupCollapsed(...args) { reflectApply(consoleMethods.group, consoleObject, args); },
  groupEnd() { groupIndent = stringSlice(groupIndent, 0, -2); },
  count(name) {
    name = label(name);
    const count = (mapGet(counters, name) ?? 0) + 1;
    mapSet(counters, name, count);
    printLine(1, `${name}: ${count}`);
  },
  countReset(name) {
    name = label(name);
    if (!mapDelete(counters, name)) printLine(2, `Warning: Count for '${name}' does not exist`);
  },
  time(name) {
    name = label(name);
    if (mapHas(stopwatches, name)) printLine(2, `Warning: Label '${name}' already exists for console.time()`);
    else mapSet(stopwatches, name, host.now());
  },
  timeLog(name, ...args) {
    name = label(name);
    const elapsed = stopwatch(name, 'timeLog');
    if (elapsed !== undefined) printLine(1, format(arrayConcat([`${name}: ${elapsed}`], args)));
  },
  timeEnd(name) {
    name = label(name);
    const elapsed = stopwatch(name, 'timeEnd');
    if (elapsed === undefined) return;
    printLine(1, `${name}: ${elapsed}`);
    mapDelete(stopwatches, name);
  },
  timeStamp() {},
  profile() {},
  profileEnd() {},
  clear() {},
  table(data, columns) { printLine(1, tableText(data, columns)); },
};
for (const name of objectKeys(consoleMethods)) {
  put(consoleObject, name, consoleMethods[name]);
}
put(consoleObject, symbolToStringTag, 'console', false);

// ---- console.table ----------------------------------------------------------------------------------------

const tableCell = (value) =>
  inspect(value, { depth: isObject(value) && !arrayIsArray(value) && objectKeys(value).length > 2 ? -1 : 0,
                   maxArrayLength: 3, breakLength: Infinity });

function displayWidth(text) {
  let width = 0;
  for (let i = 0; i < text.length; ++i) {
    const point = stringCodePointAt(text, i);
    if (point > 0xffff) ++i;
    if (point < 0x20 || (point >= 0x300 && point <= 0x36f) || (point >= 0x200b && point <= 0x200f) ||
        (point >= 0xfe00 && point <= 0xfe0f)) continue;
    const wide = point >= 0x1100 && (point <= 0x115f || (point >= 0x2e80 && point <= 0xa4cf) ||
      (point >= 0xac00 && point <= 0xd7a3) || (point >= 0xf900 && point <= 0xfaff) || (point >= 0xfe30 && point <= 0xfe6f) ||
      (point >= 0xff00 && point <= 0xff60) || (point >= 0xffe0 && point <= 0xffe6) || (point >= 0x1f300 && point <= 0x1faff) ||
      (point >= 0x20000 && point <= 0x3fffd));
    width += wide ? 2 : 1;
  }
  return width;
}

/// Rows of {index, cells}, where a cell belongs to a named column or is the row's plain value.
function tableText(data, columns) {
  if (!isObject(data)) return formatArgument(data);
  const kind = kindOf(data), rows = [], names = [], known = new NativeSet();
  let indexTitle = '(index)', plainValues = false;
  const addRow = (index, value) => {
    const row = { __proto__: null, index, value: '', cells: new NativeMap() };
    if (isObject(value) && typeof value !== 'function' && kindOf(value) !== 'Proxy') {
      const keys = columns === undefined ? objectKeys(value) : columns;
      for (let i = 0; i < keys.length; ++i) {
        const key = `${keys[i]}`;
        if (!setHas(known, key)) { setAdd(known, key); arrayPush(names, key); }
        if (hasOwn(value, key)) mapSet(row.cells, key, tableCell(peek(value, key)));
      }
    } else {
      plainValues = true;
      row.value = tableCell(value);
    }
    arrayPush(rows, row);
  };
  if (kind === 'Map') {
    indexTitle = '(iteration index)';
    let i = 0;
    plainValues = true;
    arrayPush(names, 'Key');
    mapForEach(data, (value, key) => {
      const row = { __proto__: null, index: `${i++}`, value: tableCell(value), cells: new NativeMap() };
      mapSet(row.cells, 'Key', tableCell(key));
      arrayPush(rows, row);
    });
  } else if (kind === 'Set') {
    indexTitle = '(iteration index)';
    let i = 0;
    setForEach(data, (value) => addRow(`${i++}`, value));
  } else {
    const keys = objectKeys(data);
    for (let i = 0; i < keys.length; ++i) addRow(keys[i], peek(data, keys[i]));
  }

  const titles = [indexTitle];
  for (let i = 0; i < names.length; ++i) arrayPush(titles, names[i]);
  if (plainValues) arrayPush(titles, 'Values');
  const lines = [], widths = arrayMap(titles, (title) => displayWidth(title) + 2);
  for (let r = 0; r < rows.length; ++r) {
    const cells = [rows[r].index];
    for (let i = 0; i < names.length; ++i) arrayPush(cells, mapGet(rows[r].cells, names[i]) ?? '');
    if (plainValues) arrayPush(cells, rows[r].value);
    for (let i = 0; i < cells.length; ++i) widths[i] = mathMax(widths[i], displayWidth(cells[i]) + 2);
    arrayPush(lines, cells);
  }
  const rule = (left, middle, right) =>
    left + arrayJoin(arrayMap(widths, (width) => stringRepeat('─', width)), middle) + right;
  const line = (cells) => `│${arrayJoin(arrayMap(cells, (cell, i) =>
    ` ${cell}${stringRepeat(' ', widths[i] - displayWidth(cell) - 1)}`), '│')}│`;
  const out = [rule('┌', '┬', '┐'), line(titles), rule('├', '┼', '┤')];
  for (let i = 0; i < lines.length; ++i) arrayPush(out, line(lines[i]));
  arrayPush(out, rule('└', '┴', '┘'));
  return arrayJoin(out, '\n');
}
