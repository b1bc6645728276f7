// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Text for any value, laid out as Node's util.inspect does. Reading a value never runs user code: properties are
// read through their descriptors, proxies through the engine, brands through class numbers. The exceptions are
// those the user asks for: [util.inspect.custom], a getter for Symbol.toStringTag, and { getters: true }.

const inspectCustom = symbolFor('nodejs.util.inspect.custom');
const inspectDefaults = {
  __proto__: null, showHidden: false, depth: 2, colors: false, customInspect: true, showProxy: false,
  maxArrayLength: 100, maxStringLength: 10000, breakLength: 80, compact: 3, sorted: false, getters: false,
};
// Programs reach it as util.inspect.defaultOptions and may set other values, but no getters.
const inspectKeys = objectKeys(inspectDefaults);
for (let i = 0; i < inspectKeys.length; ++i) {
  defineProperty(inspectDefaults, inspectKeys[i], { __proto__: null, configurable: false });
}
const identifierPattern = /^[a-zA-Z_][a-zA-Z_0-9]*$/;
const indexPattern = /^(0|[1-9][0-9]*)$/;
const quotedEscapes = objectAssign(objectCreate(null), {
  '\b': '\\b', '\t': '\\t', '\n': '\\n', '\v': '\\x0B', '\f': '\\f', '\r': '\\r', '\\': '\\\\',
});

function quote(text) {
  let mark = "'";
  if (stringIncludes(text, "'")) {
    if (!stringIncludes(text, '"')) mark = '"';
    else if (!stringIncludes(text, '`') && !stringIncludes(text, '${')) mark = '`';
  }
  let out = mark, from = 0;
  const length = text.length;
  for (let i = 0; i < length; ++i) {
    const code = stringCharCodeAt(text, i);
    let escape;
    if (code < 0x20 || code === 0x5c || (code >= 0x7f && code <= 0x9f)) {
      escape = quotedEscapes[text[i]] ?? `\\x${stringToUpperCase(stringPadStart(numberToString(code, 16), 2, '0'))}`;
    } else if (text[i] === mark) {
      escape = `\\${mark}`;
    } else if (code >= 0xd800 && code <= 0xdfff) {
      const next = i + 1 < length ? stringCharCodeAt(text, i + 1) : 0;
      if (code <= 0xdbff && next >= 0xdc00 && next <= 0xdfff) { ++i; continue; }
      escape = `\\u${numberToString(code, 16)}`;
    } else {
      continue;
    }
    out += stringSlice(text, from, i) + escape;
    from = i + 1;
  }
  return out + stringSlice(text, from) + mark;
}

const colorCodes = objectAssign(objectCreate(null), {
  number: [33, 39], bigint: [33, 39], boolean: [33, 39], string: [32, 39], symbol: [32, 39], undefined: [90, 39],
  null: [1, 22], date: [35, 39], regexp: [31, 39], special: [36, 39],
});
function paint(context, text, style) {
  if (!context.colors) return text;
  const code = colorCodes[style];
  return `\x1b[${code[0]}m${text}\x1b[${code[1]}m`;
}

/// Names and the like have no limit of their own, except in reports.
function clip(context, text) {
  return context.isReport ? shorten(text, lineMax) : text;
}

function formatNumber(value) {
  return objectIs(value, -0) ? '-0' : `${value}`;
}

function formatPrimitive(context, value) {
  switch (typeof value) {
    case 'string': {
      let text = value, tail = '';
      if (text.length > context.maxStringLength) {
        const rest = text.length - context.maxStringLength;
        text = stringSlice(text, 0, context.maxStringLength);
        tail = `... ${rest} more character${rest > 1 ? 's' : ''}`;
      }
      if (text.length > 16 && text.length > context.breakLength - context.indentation - 4 &&
          stringIncludes(text, '\n') && context.compact !== true) {
        const lines = splitKeepingNewlines(text);
        for (let i = 0; i < lines.length; ++i) lines[i] = paint(context, quote(lines[i]), 'string');
        return arrayJoin(lines, ` +\n${stringRepeat(' ', context.indentation + 2)}`) + tail;
      }
      return paint(context, quote(text), 'string') + tail;
    }
    case 'number': return paint(context, formatNumber(value), 'number');
    case 'bigint': return paint(context, clip(context, `${value}n`), 'bigint');
    case 'boolean': return paint(context, `${value}`, 'boolean');
    case 'undefined': return paint(context, 'undefined', 'undefined');
    case 'symbol': return paint(context, clip(context, symbolToString(value)), 'symbol');
    default: return paint(context, 'null', 'null');
  }
}

function splitKeepingNewlines(text) {
  const lines = [];
  let from = 0;
  for (;;) {
    const end = stringIndexOf(text, '\n', from);
    if (end < 0 || end + 1 === text.length) break;
    arrayPush(lines, stringSlice(text, from, end + 1));
    from = end + 1;
  }
  arrayPush(lines, stringSlice(text, from));
  return lines;
}

/// The value of an own or inherited data property, without running getters or proxy traps.
function peek(object, key) {
  for (let hops = 0; object !== null && hops < 1000; ++hops) {
    if (host.isProxy(object)) return undefined;
    const descriptor = getOwnPropertyDescriptor(object, key);
    if (descriptor !== undefined) return hasOwn(descriptor, 'value') ? descriptor.value : undefined;
    object = getPrototypeOf(object);
  }
  return undefined;
}

/// Name of the class an object was made by; null when its prototype chain names none.
function constructorName(object) {
  let from = object;
  for (let hops = 0; from !== null && hops < 1000; ++hops) {
    if (host.isProxy(from)) return null;
    const descriptor = getOwnPropertyDescriptor(from, 'constructor');
    if (descriptor !== undefined && hasOwn(descriptor, 'value') && typeof descriptor.value === 'function') {
      const name = functionName(descriptor.value);
      if (name !== '' && isPrototypeInChain(object, peek(descriptor.value, 'prototype'))) return name;
    }
    from = getPrototypeOf(from);
  }
  return null;
}

function isPrototypeInChain(object, prototype) {
  if (!isObject(prototype)) return false;
  for (let hops = 0; hops < 1000; ++hops) {
    object = getPrototypeOf(object);
    if (object === null || host.isProxy(object)) return object === prototype;
    if (object === prototype) return true;
  }
  return false;
}

function functionName(fn) {
  if (host.isProxy(fn)) return '';
  const descriptor = getOwnPropertyDescriptor(fn, 'name');
  return descriptor !== undefined && hasOwn(descriptor, 'value') && typeof descriptor.value === 'string'
    ? descriptor.value : '';
}

function tagOf(context, object, name) {
  for (let at = object, hops = 0; at !== null && hops < 1000; ++hops) {
    if (host.isProxy(at)) return '';
    const descriptor = getOwnPropertyDescriptor(at, symbolToStringTag);
    if (descriptor !== undefined) {
      if (hops === 0 && descriptor.enumerable) return '';  // listed among the properties
      let tag;
      if (hasOwn(descriptor, 'value')) tag = descriptor.value;
      else if (!context.isQuiet) try { tag = reflectApply(descriptor.get, object, []); } catch { return ''; }
      return typeof tag === 'string' && tag !== '' && tag !== name ? clip(context, tag) : '';
    }
    at = getPrototypeOf(at);
  }
  return '';
}

/// `Name ` or `[Name: null prototype] ` and the like: what stands before the braces.
function prefix(name, tag, fallback, size = '') {
  if (name === null) {
    const inner = tag !== '' && tag !== fallback ? `${fallback}${size}: null prototype] [${tag}` : `${fallback}${size}: null prototype`;
    return `[${inner}] `;
  }
  return tag !== '' ? `${name}${size} [${tag}] ` : `${name}${size} `;
}

/// One more than may be shown says that there are more.
function visibleKeys(context, object, isList = false) {
  const all = reflectOwnKeys(object), keys = [];
  for (let i = 0; i < all.length && keys.length <= context.keysMax; ++i) {
    const key = all[i];
    if (isList && typeof key === 'string' && isArrayIndex(key)) continue;
    if (context.showHidden || isEnumerable(object, key)) arrayPush(keys, key);
  }
  return keys;
}

// The engine cannot be asked for the named properties of a list alone. A longer list is shown without them.
const listMax = 1e6;

function namedKeys(context, object, length) {
  return length > listMax ? [] : visibleKeys(context, object, true);
}

function isArrayIndex(key) {
  return key.length <= 10 && regexpExec(indexPattern, key) !== null && +key < 4294967295;
}

function formatKey(context, key, hidden) {
  if (typeof key === 'symbol') return `[${paint(context, clip(context, symbolToString(key)), 'symbol')}]`;
  if (key === '__proto__') return "['__proto__']";
  key = clip(context, key);
  if (hidden) return `[${key}]`;
  return regexpExec(identifierPattern, key) !== null ? key : paint(context, quote(key), 'string');
}

const kPlainProperty = 0, kArrayItem = 1;

function formatProperty(context, object, key, depth, kind) {
  const descriptor = getOwnPropertyDescriptor(object, key);
  let text;
  if (hasOwn(descriptor, 'value')) {
    const indent = context.compact !== true || kind !== kPlainProperty ? 2 : 3;
    context.indentation += indent;
    text = formatValue(context, descriptor.value, depth);
    if (indent === 3 && context.breakLength < text.length) text = `\n${stringRepeat(' ', context.indentation)}${text}`;
    context.indentation -= indent;
  } else if (descriptor.get !== undefined) {
    const label = descriptor.set !== undefined ? 'Getter/Setter' : 'Getter';
    if (context.getters) {
      try {
        const value = reflectApply(descriptor.get, object, []);
        context.indentation += 2;
        text = isObject(value) ? `${paint(context, `[${label}]`, 'special')} ${formatValue(context, value, depth)}`
                               : `${paint(context, `[${label}:`, 'special')} ${formatPrimitive(context, value)}${paint(context, ']', 'special')}`;
        context.indentation -= 2;
      } catch (error) {
        text = paint(context, `[${label}: <Inspection threw (${errorMessage(error)})>]`, 'special');
      }
    } else {
      text = paint(context, `[${label}]`, 'special');
    }
  } else {
    text = paint(context, descriptor.set !== undefined ? '[Setter]' : 'undefined', descriptor.set !== undefined ? 'special' : 'undefined');
  }
  if (kind === kArrayItem) return text;
  return `${formatKey(context, key, !descriptor.enumerable)}:${text[0] === '\n' ? '' : ' '}${text}`;
}

function moreItems(rest) {
  return `... ${rest} more item${rest > 1 ? 's' : ''}`;
}

function formatArrayItems(context, array, depth) {
  const output = [], length = array.length, limit = mathMin(mathMax(0, context.maxArrayLength), length);
  let shown = 0, at = 0;
  for (; at < length && shown < limit; ++shown) {
    if (hasOwn(array, at)) {
      arrayPush(output, formatProperty(context, array, `${at}`, depth, kArrayItem));
      ++at;
    } else {
      let holes = 0;
      if (length - at > 1e6) {
        // A huge sparse array: find the next real index among its keys instead of stepping over billions of holes.
        const keys = arrayFilter(objectKeys(array), (key) => isArrayIndex(key) && +key > at);
        holes = (keys.length > 0 ? +keys[0] : length) - at;
      } else {
        while (at + holes < length && !hasOwn(array, at + holes)) ++holes;
      }
      arrayPush(output, paint(context, `<${holes} empty item${holes > 1 ? 's' : ''}>`, 'undefined'));
      at += holes;
    }
  }
  if (at < length) arrayPush(output, moreItems(length - at));
  return output;
}

function formatTypedArrayItems(context, array) {
  const output = [], length = typedArrayLength(array), limit = mathMin(mathMax(0, context.maxArrayLength), length);
  for (let i = 0; i < limit; ++i) arrayPush(output, formatPrimitive(context, array[i]));
  if (length > limit) arrayPush(output, moreItems(length - limit));
  return output;
}

function formatSetItems(context, set, depth) {
  const output = [], limit = mathMax(0, context.maxArrayLength), size = setSize(set), values = setValues(set);
  context.indentation += 2;
  while (output.length < limit) {
    const { done, value } = setNext(values);
    if (done) break;
    arrayPush(output, formatValue(context, value, depth));
  }
  context.indentation -= 2;
  if (size > limit) arrayPush(output, moreItems(size - limit));
  return output;
}

function formatMapItems(context, map, depth) {
  const output = [], limit = mathMax(0, context.maxArrayLength), size = mapSize(map), keys = mapKeys(map);
  context.indentation += 2;
  while (output.length < limit) {
    const { done, value: key } = mapNext(keys);
    if (done) break;
    arrayPush(output, `${formatValue(context, key, depth)} => ${formatValue(context, mapGet(map, key), depth)}`);
  }
  context.indentation -= 2;
  if (size > limit) arrayPush(output, moreItems(size - limit));
  return output;
}

function formatBufferContents(context, bytes) {
  const limit = mathMin(mathMax(0, context.maxArrayLength), typedArrayLength(bytes));
  let text = '';
  for (let i = 0; i < limit; ++i) text += `${i > 0 ? ' ' : ''}${stringPadStart(numberToString(bytes[i], 16), 2, '0')}`;
  const rest = typedArrayLength(bytes) - limit;
  if (rest > 0) text += ` ... ${rest} more byte${rest > 1 ? 's' : ''}`;
  return text;
}

function functionBase(context, fn, name, tag) {
  let source = '';
  try { source = functionToString(fn); } catch { /* a callable without source */ }
  if (stringStartsWith(source, 'class') && stringEndsWith(source, '}')) {
    const own = clip(context, functionName(fn));
    let base = `[class ${own === '' ? '(anonymous)' : own}`;
    if (name !== 'Function' && name !== null) base += ` [${name}]`;
    if (tag !== '' && name !== tag) base += ` [${tag}]`;
    if (name !== null) {
      const parent = getPrototypeOf(fn);
      const parentName = parent !== null ? clip(context, functionName(parent)) : '';
      if (parentName !== '') base += ` extends ${parentName}`;
    } else {
      base += ' extends [null prototype]';
    }
    return `${base}]`;
  }
  const own = clip(context, functionName(fn));
  const type = functionTypes[host.classId(fn)] ?? 'Function';
  let base = `[${type}`;
  if (name === null) base += ' (null prototype)';
  base += own === '' ? ' (anonymous)' : `: ${own}`;
  base += ']';
  if (name !== type && name !== null && name !== 'Function') base += ` ${name}`;
  if (tag !== '' && name !== tag && tag !== type) base += ` [${tag}]`;
  return base;
}
const functionTypes = objectCreate(null);
functionTypes[host.classId(async () => {})] = 'AsyncFunction';
functionTypes[host.classId(function* () {})] = 'GeneratorFunction';
functionTypes[host.classId(async function* () {})] = 'AsyncGeneratorFunction';

function formatRaw(context, value, depth, kind) {
  const made = constructorName(value), name = made === null ? null : clip(context, made);
  let tag = tagOf(context, value, name);
  let braces = ['{', '}'], base = '', keys, items = () => [], isList = false;

  switch (kind) {
    case 'Array': {
      keys = namedKeys(context, value, value.length);
      const before = name !== 'Array' || tag !== '' ? prefix(name, tag, 'Array', `(${value.length})`) : '';
      braces = [`${before}[`, ']'];
      if (value.length === 0 && keys.length === 0) return `${braces[0]}]`;
      isList = true;
      items = () => formatArrayItems(context, value, depth);
      break;
    }
    case 'Set':
      keys = visibleKeys(context, value);
      braces[0] = `${prefix(name, tag, 'Set', `(${setSize(value)})`)}{`;
      if (setSize(value) === 0 && keys.length === 0) return `${braces[0]}}`;
      items = () => formatSetItems(context, value, depth);
      break;
    case 'Map':
      keys = visibleKeys(context, value);
      braces[0] = `${prefix(name, tag, 'Map', `(${mapSize(value)})`)}{`;
      if (mapSize(value) === 0 && keys.length === 0) return `${braces[0]}}`;
      items = () => formatMapItems(context, value, depth);
      break;
    case 'TypedArray': {
      keys = namedKeys(context, value, typedArrayLength(value));
      if (isBuffer(value) && keys.length === 0) return `<Buffer ${formatBufferContents(context, value)}>`;
      const type = typedArrayTag(value);
      if (tag === type) tag = '';
      braces = [`${prefix(name, tag, type, `(${typedArrayLength(value)})`)}[`, ']'];
      if (typedArrayLength(value) === 0 && keys.length === 0) return `${braces[0]}]`;
      isList = true;
      items = () => formatTypedArrayItems(context, value);
      break;
    }
    case 'Arguments':
      keys = visibleKeys(context, value);
      braces[0] = '[Arguments] {';
      if (keys.length === 0) return '[Arguments] {}';
      break;
    case 'Function':
      keys = visibleKeys(context, value);
      base = functionBase(context, value, name, tag);
      if (keys.length === 0) return paint(context, base, 'special');
      break;
    case 'RegExp': {
      keys = visibleKeys(context, value);
      base = clip(context, `/${regexpSource(value)}/${regexpFlags(value)}`);
      const before = prefix(name, tag, 'RegExp');
      if (before !== 'RegExp ') base = `${before}${base}`;
      if (keys.length === 0 || (depth > context.depth && context.depth !== null)) return paint(context, base, 'regexp');
      break;
    }
    case 'Date': {
      keys = visibleKeys(context, value);
      base = numberIsNaN(dateGetTime(value)) ? 'Invalid Date' : dateToISOString(value);
      const before = prefix(name, tag, 'Date');
      if (before !== 'Date ') base = `${before}${base}`;
      if (keys.length === 0) return paint(context, base, 'date');
      break;
    }
    case 'Error': case 'DOMException':
      keys = visibleKeys(context, value);
      base = formatErrorBase(context, value, name, tag, keys);
      if (keys.length === 0) return base;
      break;
    case 'ArrayBuffer': {
      keys = visibleKeys(context, value);
      braces[0] = `${prefix(name, tag, 'ArrayBuffer')}{`;
      items = () => {
        const size = arrayBufferByteLength(value);
        return [`[Uint8Contents]: <${formatBufferContents(context, new NativeUint8Array(value))}>`,
                `byteLength: ${paint(context, `${size}`, 'number')}`];
      };
      break;
    }
    case 'DataView':
      keys = visibleKeys(context, value);
      braces[0] = `${prefix(name, tag, 'DataView')}{`;
      items = () => {
        context.indentation += 2;
        const output = [`byteLength: ${paint(context, `${dataViewByteLength(value)}`, 'number')}`,
                        `byteOffset: ${paint(context, `${dataViewByteOffset(value)}`, 'number')}`,
                        `buffer: ${formatValue(context, dataViewBuffer(value), depth)}`];
        context.indentation -= 2;
        return output;
      };
      break;
    case 'Promise':
      keys = visibleKeys(context, value);
      braces[0] = `${prefix(name, tag, 'Promise')}{`;
      items = () => {
        const state = host.promiseState(value);
        if (state === 0) return [paint(context, '<pending>', 'special')];
        context.indentation += 2;
        const text = formatValue(context, host.promiseResult(value), depth);
        context.indentation -= 2;
        return [state === 1 ? text : `${paint(context, '<rejected>', 'special')} ${text}`];
      };
      break;
    case 'WeakSet': case 'WeakMap':
      keys = visibleKeys(context, value);
      braces[0] = `${prefix(name, tag, kind)}{`;
      items = () => [paint(context, '<items unknown>', 'special')];
      break;
    case 'WeakRef':
      keys = visibleKeys(context, value);
      braces[0] = `${prefix(name, tag, kind)}{`;
      items = () => {
        context.indentation += 2;
        const target = weakRefDeref(value);
        const text = target === undefined ? paint(context, '<cleared>', 'special') : formatValue(context, target, depth);
        context.indentation -= 2;
        return [text];
      };
      break;
    case 'Generator': case 'AsyncGenerator':
      keys = visibleKeys(context, value);
      braces[0] = kind === 'Generator' ? 'Object [Generator] {' : 'Object [AsyncGenerator] {';
      if (keys.length === 0) return `${braces[0]}}`;
      break;
    case 'Number': case 'Boolean': case 'BigInt': case 'Symbol': case 'String': {
      keys = kind === 'String' ? namedKeys(context, value, stringValueOf(value).length) : visibleKeys(context, value);
      let inner;
      if (kind === 'Number') inner = numberValueOf(value);
      else if (kind === 'Boolean') inner = booleanValueOf(value);
      else if (kind === 'BigInt') inner = bigintValueOf(value);
      else if (kind === 'Symbol') inner = symbolValueOf(value);
      else inner = stringValueOf(value);
      base = `[${kind}`;
      if (name !== kind) base += name === null ? ' (null prototype)' : ` (${name})`;
      base += `: ${formatPrimitive({ __proto__: context, colors: false }, inner)}]`;
      if (tag !== '' && tag !== name) base += ` [${tag}]`;
      base = paint(context, base, kind === 'String' ? 'string' : stringToLowerCase(kind));
      if (keys.length === 0) return base;
      break;
    }
    default: {
      keys = visibleKeys(context, value);
      if (name === 'Object' && tag === '') {
        if (keys.length === 0) return '{}';
      } else {
        const before = name === null || name !== 'Object' || tag !== '' ? prefix(name, tag, 'Object') : '';
        braces[0] = `${before}{`;
        if (keys.length === 0) return `${braces[0]}}`;
      }
    }
  }

  if (depth > context.depth && context.depth !== null) {
    const label = stringSlice(prefix(name, tag, kind === 'Array' ? 'Array' : 'Object'), 0, -1);
    return paint(context, `[${name === null ? label : `${label}`}]`, 'special');
  }
  depth += 1;
  arrayPush(context.seen, value);
  context.level = depth;
  const output = items(), listed = mathMin(keys.length, context.keysMax);
  for (let i = 0; i < listed; ++i) arrayPush(output, formatProperty(context, value, keys[i], depth, kPlainProperty));
  if (listed < keys.length) arrayPush(output, '... more properties');
  arrayPop(context.seen);

  const reference = context.circular !== undefined ? mapGet(context.circular, value) : undefined;
  if (reference !== undefined) {
    const mark = paint(context, `<ref *${reference}>`, 'special');
    if (context.compact !== true) base = base === '' ? mark : `${mark} ${base}`;
    else braces[0] = `${mark} ${braces[0]}`;
  }
  if (context.sorted) {
    const compare = context.sorted === true ? undefined : context.sorted;
    const own = arraySort(arraySlice(output, output.length - listed), compare);
    for (let i = 0; i < own.length; ++i) output[output.length - listed + i] = own[i];
  }
  const text = layOut(context, output, base, braces, isList, depth, value);
  const budget = context.budget - text.length;
  context.budget = budget;
  if (budget < 0) context.depth = -1;  // enough text: from here on show only [Object]
  return text;
}

/// Joins the parts on one line when they are few and short, in columns for long lists, else one per line.
function layOut(context, output, base, braces, isList, depth, value) {
  if (context.compact !== true) {
    if (typeof context.compact === 'number' && context.compact >= 1) {
      const entries = output.length;
      if (isList && entries > 6) output = groupItems(context, output, value);
      if (context.level - depth < context.compact && entries === output.length) {
        const start = output.length + context.indentation + braces[0].length + base.length + 10;
        if (fitsLine(context, output, start, base)) {
          const joined = arrayJoin(output, ', ');
          if (!stringIncludes(joined, '\n')) {
            return `${base !== '' ? `${base} ` : ''}${braces[0]} ${joined} ${braces[1]}`;
          }
        }
      }
    }
    const indent = `\n${stringRepeat(' ', context.indentation)}`;
    return `${base !== '' ? `${base} ` : ''}${braces[0]}${indent}  ${arrayJoin(output, `,${indent}  `)}${indent}${braces[1]}`;
  }
  if (fitsLine(context, output, 0, base)) {
    return `${braces[0]}${base !== '' ? ` ${base}` : ''} ${arrayJoin(output, ', ')} ${braces[1]}`;
  }
  const indent = `\n${stringRepeat(' ', context.indentation)}`;
  const head = base === '' && braces[0].length === 1 ? ' ' : `${base !== '' ? ` ${base}` : ''}\n${indent}  `;
  return `${braces[0]}${head}${arrayJoin(output, `,${indent}`)} ${braces[1]}`;
}

function fitsLine(context, output, start, base) {
  let total = output.length + start;
  if (total + output.length > context.breakLength) return false;
  for (let i = 0; i < output.length; ++i) {
    total += visibleLength(context, output[i]);
    if (total > context.breakLength) return false;
  }
  return base === '' || !stringIncludes(base, '\n');
}

const colorPattern = /\x1b\[[0-9]+m/g;
function visibleLength(context, text) {
  if (!context.colors) return text.length;
  let length = text.length, match;
  colorPattern.lastIndex = 0;
  while ((match = regexpExec(colorPattern, text)) !== null) length -= match[0].length;
  return length;
}

/// Puts the items of a long list into aligned columns, about as wide as the line allows.
function groupItems(context, output, value) {
  const extra = context.maxArrayLength < output.length ? 1 : 0;  // the "... more items" line stays alone
  const count = output.length - extra, gap = 2;
  let total = 0, longest = 0;
  const lengths = [];
  for (let i = 0; i < count; ++i) {
    const length = visibleLength(context, output[i]);
    arrayPush(lengths, length);
    total += length + gap;
    if (length > longest) longest = length;
  }
  const width = longest + gap;
  if (!(width * 3 + context.indentation < context.breakLength && (total / width > 5 || longest <= 6))) return output;

  // About as many columns as make a block 2.5 times as wide as it is high, judged by a typical item's width.
  const typical = mathMax(width - 3 - mathSqrt(width - total / output.length), 1);
  const columns = mathMin(
    mathRound(mathSqrt(2.5 * typical * count) / typical),
    mathFloor((context.breakLength - context.indentation) / width),
    context.compact * 4,
    15);
  if (columns <= 1) return output;
  const widths = [];
  for (let column = 0; column < columns; ++column) {
    let widest = 0;
    for (let i = column; i < count; i += columns) if (lengths[i] > widest) widest = lengths[i];
    arrayPush(widths, widest + gap);
  }
  let padBefore = value !== undefined;
  if (padBefore) {
    for (let i = 0; i < count; ++i) {
      const item = value[i];
      if (typeof item !== 'number' && typeof item !== 'bigint') { padBefore = false; break; }
    }
  }
  const grouped = [];
  for (let row = 0; row < count; row += columns) {
    const end = mathMin(row + columns, count);
    let line = '';
    for (let i = row; i < end - 1; ++i) {
      const cell = `${output[i]}, `, pad = stringRepeat(' ', mathMax(0, widths[i - row] - lengths[i] - gap));
      line += padBefore ? pad + cell : cell + pad;
    }
    const last = end - 1;
    if (padBefore) line += stringRepeat(' ', mathMax(0, widths[last - row] - gap - lengths[last])) + output[last];
    else line += output[last];
    arrayPush(grouped, line);
  }
  if (extra) arrayPush(grouped, output[count]);
  return grouped;
}

function formatValue(context, value, depth) {
  if (!isObject(value)) return formatPrimitive(context, value);
  let kind = kindOf(value);
  if (kind === 'Proxy') {
    const target = host.proxyTarget(value);
    if (context.showProxy) {
      context.indentation += 2;
      const parts = [formatValue(context, target, depth + 1), formatValue(context, host.proxyHandler(value), depth + 1)];
      context.indentation -= 2;
      return layOut(context, parts, '', ['Proxy [', ']'], false, depth, undefined);
    }
    if (target === null || target === undefined) return paint(context, '<Revoked Proxy>', 'special');
    return formatValue(context, target, depth);
  }
  if (context.customInspect) {
    const custom = peek(value, inspectCustom);
    if (typeof custom === 'function' && custom !== inspect) {
      const left = context.depth === null ? null : context.depth - depth;
      const options = { stylize: (text) => `${text}` };
      for (let i = 0; i < inspectKeys.length; ++i) put(options, inspectKeys[i], context[inspectKeys[i]]);
      options.depth = left;
      const shown = reflectApply(custom, value, [left, options, inspect]);
      if (shown !== value) {
        if (typeof shown !== 'string') return formatValue(context, shown, depth);
        return stringReplaceAll(shown, '\n', `\n${stringRepeat(' ', context.indentation)}`);
      }
    }
  }
  if (arrayIncludes(context.seen, value)) {
    if (context.circular === undefined) context.circular = new NativeMap();
    let index = mapGet(context.circular, value);
    if (index === undefined) {
      index = mapSize(context.circular) + 1;
      mapSet(context.circular, value, index);
    }
    return paint(context, `[Circular *${index}]`, 'special');
  }
  return formatRaw(context, value, depth, kind);
}

function inspectContext(options) {
  const context = {
    __proto__: null, ...inspectDefaults, seen: [], circular: undefined, indentation: 0, level: 0, budget: 1 << 27, keysMax: Infinity,
    isReport: false, isQuiet: false,
  };
  if (isObject(options)) {
    const keys = objectKeys(options);
    for (let i = 0; i < keys.length; ++i) if (keys[i] in inspectDefaults) context[keys[i]] = options[keys[i]];
  }
  if (context.depth === undefined) context.depth = 2;
  if (context.maxArrayLength === null) context.maxArrayLength = Infinity;
  if (context.maxStringLength === null) context.maxStringLength = Infinity;
  if (context.compact === false) context.compact = 0;
  // Anything else would run its valueOf wherever it is compared.
  if (typeof context.depth !== 'number' && context.depth !== null) context.depth = 2;
  if (typeof context.maxArrayLength !== 'number') context.maxArrayLength = 100;
  if (typeof context.maxStringLength !== 'number') context.maxStringLength = 10000;
  if (typeof context.breakLength !== 'number') context.breakLength = 80;
  if (typeof context.compact !== 'number' && context.compact !== true) context.compact = 3;
  if (typeof context.sorted !== 'function') context.sorted = context.sorted === true;
  return context;
}

function inspect(value, options) {
  if (typeof options === 'boolean') {
    const depth = arguments[2];
    options = { showHidden: options };
    if (depth !== undefined) options.depth = depth;
    if (arguments[3] !== undefined) options.colors = arguments[3];
  }
  return formatValue(inspectContext(options), value, 0);
}
put(inspect, 'custom', inspectCustom);
put(inspect, 'defaultOptions', inspectDefaults);

// ---- console.log's format strings -------------------------------------------------------------------------

const lineOptions = { __proto__: null, compact: 3, colors: false, depth: 2 };

/// Text of one argument of console.log: strings as they are.
function formatArgument(value, options = lineOptions) {
  switch (typeof value) {
    case 'string': return value;
    case 'number': return formatNumber(value);
    case 'boolean': case 'undefined': return `${value}`;
    case 'bigint': return `${value}n`;
    case 'symbol': return symbolToString(value);
    default: return value === null ? 'null' : formatValue(inspectContext(options), value, 0);
  }
}

/// %s of an object: its own toString when it has one, else a shallow look at it.
function formatStringDirective(value) {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number') return formatNumber(value);
  if (typeof value === 'symbol') return symbolToString(value);
  if (!isObject(value)) return `${value}`;
  if (typeof value === 'function' && !host.isProxy(value)) return `${value}`;
  if (!host.isProxy(value)) {
    if (isErrorLike(value) && !hasOwn(value, 'toString')) {
      try { return errorToText(value); } catch { /* shown by inspect */ }
    }
    const toText = peek(value, 'toString');
    if (typeof toText === 'function' && toText !== objectPrototype.toString && hasUserMethod(value, 'toString')) {
      return `${reflectApply(toText, value, [])}`;
    }
  }
  return inspect(value, { depth: 0, colors: false, compact: 3 });
}

/// True when the method comes from a class or object of the user, not from a built-in prototype.
function hasUserMethod(object, key) {
  for (let at = object, hops = 0; at !== null && hops < 1000; ++hops) {
    if (hasOwn(at, key)) return hops === 0 || !builtinPrototypes.has(at);
    at = getPrototypeOf(at);
  }
  return false;
}
const builtinPrototypes = {
  set: new NativeSet([Object.prototype, Function.prototype, Array.prototype, Error.prototype, Date.prototype,
                      RegExp.prototype, typedArrayPrototype, Number.prototype, String.prototype, Boolean.prototype,
                      Symbol.prototype, BigInt.prototype]),
  has(prototype) { return setHas(this.set, prototype); },
};

function toNumberForDirective(value, convert) {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol' || isObject(value)) {
    if (typeof value === 'symbol' || typeof value === 'object') return 'NaN';
  }
  return formatNumber(convert(value));
}

/// Text of console.log(...args).
function format(args) {
  const count = args.length;
  if (count === 0) return '';
  const first = args[0];
  if (count === 1) return formatArgument(first);
  let text = '', next = 0;
  if (typeof first === 'string') {
    next = 1;
    if (!stringIncludes(first, '%')) {
      text = first;
    } else {
      let from = 0;
      for (let i = 0; i < first.length - 1; ++i) {
        if (first[i] !== '%') continue;
        const directive = first[i + 1];
        if (directive === '%') {
          text += stringSlice(first, from, i + 1);
          from = i + 2;
          ++i;
          continue;
        }
        if (next >= count) continue;
        let piece;
        switch (directive) {
          case 's': piece = formatStringDirective(args[next]); break;
          case 'd': piece = toNumberForDirective(args[next], NativeNumber); break;
          case 'i': piece = toNumberForDirective(args[next], (value) => numberParseInt(value)); break;
          case 'f': piece = typeof args[next] === 'symbol' ? 'NaN' : formatNumber(numberParseFloat(args[next])); break;
          case 'j': piece = formatJsonDirective(args[next]); break;
          case 'o': piece = inspect(args[next], { showHidden: true, showProxy: true, depth: 4 }); break;
          case 'O': piece = formatArgument(args[next]); if (typeof args[next] === 'string') piece = quote(piece); break;
          case 'c': piece = ''; break;  // CSS: there is nothing to style
          default: continue;
        }
        text += stringSlice(first, from, i) + piece;
        from = i + 2;
        ++i;
        ++next;
      }
      text += stringSlice(first, from);
    }
  } else {
    text = formatArgument(first);
    next = 1;
  }
  for (; next < count; ++next) text += ` ${formatArgument(args[next])}`;
  return text;
}

function formatJsonDirective(value) {
  try {
    return `${hasIndexSetters() ? writeJson(value, '', 0) : jsonStringify(value)}`;
  } catch (error) {
    if (kindOf(error) === 'Error' && stringIncludes(`${peek(error, 'message')}`, 'circular')) return '[Circular]';
    throw error;
  }
}
