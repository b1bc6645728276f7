// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// structuredClone: a deep copy that keeps cycles, shared references and built-in types. What cannot be copied
// is refused with a DataCloneError.

function dataCloneError(value, why = 'could not be cloned') {
  let name;
  try { name = typeof value === 'symbol' ? symbolToString(value) : inspect(value, { depth: 0 }); } catch { name = 'the value'; }
  return atCaller(new NativeDOMException(`${name} ${why}.`, 'DataCloneError'), structuredClone);
}

const clonedErrorPrototypes = objectCreate(null);
for (const type of [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]) {
  clonedErrorPrototypes[type.name] = type;
}
const viewConstructors = objectCreate(null);
for (const type of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array,
                    BigInt64Array, BigUint64Array, Float16Array, Float32Array, Float64Array]) {
  viewConstructors[type.name] = type;
}

function cloneValue(value, memory) {
  if (!isObject(value)) {
    if (typeof value === 'symbol') throw dataCloneError(value);
    return value;
  }
  if (mapHas(memory, value)) return mapGet(memory, value);
  const remember = (copy) => { mapSet(memory, value, copy); return copy; };
  const kind = kindOf(value);
  switch (kind) {
    case 'Boolean': return remember(new NativeBoolean(booleanValueOf(value)));
    case 'Number': return remember(new NativeNumber(numberValueOf(value)));
    case 'String': return remember(new NativeString(stringValueOf(value)));
    case 'BigInt': return remember(NativeObject(bigintValueOf(value)));
    case 'Date': return remember(new NativeDate(dateGetTime(value)));
    case 'RegExp': return remember(new NativeRegExp(regexpSource(value), regexpFlags(value)));
    case 'ArrayBuffer': return remember(typedArrayBuffer(copyBytes(new NativeUint8Array(value), 0, arrayBufferByteLength(value))));
    case 'DataView':
      return remember(new NativeDataView(cloneValue(dataViewBuffer(value), memory), dataViewByteOffset(value), dataViewByteLength(value)));
    case 'TypedArray': {
      const type = viewConstructors[typedArrayTag(value)];
      return remember(new type(cloneValue(typedArrayBuffer(value), memory), typedArrayByteOffset(value), typedArrayLength(value)));
    }
    case 'Map': {
      const copy = remember(new NativeMap()), entries = [];
      mapForEach(value, (item, key) => arrayPush(entries, [key, item]));
      for (let i = 0; i < entries.length; ++i) mapSet(copy, cloneValue(entries[i][0], memory), cloneValue(entries[i][1], memory));
      return copy;
    }
    case 'Set': {
      const copy = remember(new NativeSet()), items = [];
      setForEach(value, (item) => arrayPush(items, item));
      for (let i = 0; i < items.length; ++i) setAdd(copy, cloneValue(items[i], memory));
      return copy;
    }
    case 'Error': {
      const name = value.name, type = clonedErrorPrototypes[typeof name === 'string' ? name : 'Error'] ?? NativeError;
      const copy = remember(objectCreate(null));
      const made = new type();
      mapSet(memory, value, made);
      const message = getOwnPropertyDescriptor(value, 'message');
      if (message !== undefined && hasOwn(message, 'value')) put(made, 'message', `${message.value}`, false);
      put(made, 'stack', `${peek(value, 'stack') ?? ''}`, false);
      if (hasOwn(value, 'cause')) put(made, 'cause', cloneValue(value.cause, memory), false);
      return made;
    }
    case 'Array': {
      const copy = remember([]);
      copy.length = value.length;
      return copyProperties(value, copy, memory);
    }
    case 'DOMException': return remember(new NativeDOMException(value.message, value.name));
    case 'Object':
    case 'Arguments':
      return copyProperties(value, remember({}), memory);
    default:
      throw dataCloneError(value);
  }
}

function copyProperties(from, to, memory) {
  const keys = objectKeys(from);
  for (let i = 0; i < keys.length; ++i) {
    if (hasOwn(from, keys[i])) put(to, keys[i], cloneValue(from[keys[i]], memory));
  }
  return to;
}

function structuredClone(value, options) {
  if (arguments.length === 0) throw typeError('ERR_MISSING_ARGS', 'The "value" argument must be specified', structuredClone);
  const memory = new NativeMap(), list = options?.transfer;
  const transfer = list === undefined || list === null ? [] : arrayFrom(list);
  for (let i = 0; i < transfer.length; ++i) {
    if (!isObject(transfer[i]) || kindOf(transfer[i]) !== 'ArrayBuffer') throw dataCloneError(transfer[i], 'is not transferable');
    if (arrayIndexOf(transfer, transfer[i]) !== i) throw dataCloneError(transfer[i], 'is in the transfer list twice');
    if (transfer[i].detached) throw dataCloneError(transfer[i], 'is detached');
  }
  // The buffers move only after everything else could be copied; until then their place is held.
  for (let i = 0; i < transfer.length; ++i) {
    mapSet(memory, transfer[i], new NativeArrayBuffer(arrayBufferByteLength(transfer[i])));
  }
  const copy = cloneValue(value, memory);
  for (let i = 0; i < transfer.length; ++i) {
    const moved = mapGet(memory, transfer[i]);
    typedArraySet(new NativeUint8Array(moved), new NativeUint8Array(transfer[i]));
    arrayBufferTransfer(transfer[i]);
  }
  return copy;
}
