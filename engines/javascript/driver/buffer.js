// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Buffer: Node's Uint8Array with text encodings and number access.



function isBuffer(value) {
  return typedArrayTag(value) === 'Uint8Array' && isPrototypeInChain(value, Buffer.prototype);
}

function normalEncoding(name, boundary) {
  switch (stringToLowerCase(`${name ?? 'utf8'}`)) {
    case 'utf8': case 'utf-8': case '': return 'utf8';
    case 'hex': return 'hex';
    case 'base64': return 'base64';
    case 'base64url': return 'base64url';
    case 'latin1': case 'binary': return 'latin1';
    case 'ascii': return 'ascii';
    case 'ucs2': case 'ucs-2': case 'utf16le': case 'utf-16le': return 'utf16le';
    default: throw typeError('ERR_UNKNOWN_ENCODING', `Unknown encoding: ${name}`, boundary);
  }
}

/// Text to bytes, a plain Uint8Array.
function encodeText(text, encoding) {
  switch (normalEncoding(encoding, encodeText)) {
    case 'utf8': return utf8Encode(text);
    case 'latin1': case 'ascii': {
      const bytes = new NativeUint8Array(text.length);
      for (let i = 0; i < text.length; ++i) bytes[i] = stringCharCodeAt(text, i);
      return bytes;
    }
    case 'utf16le': {
      const bytes = new NativeUint8Array(text.length * 2);
      for (let i = 0; i < text.length; ++i) {
        const code = stringCharCodeAt(text, i);
        bytes[2 * i] = code;
        bytes[2 * i + 1] = code >> 8;
      }
      return bytes;
    }
    case 'hex': {
      let size = 0;
      const bytes = new NativeUint8Array(text.length >> 1);
      while (2 * size + 1 < text.length) {
        const high = hexDigit(stringCharCodeAt(text, 2 * size)), low = hexDigit(stringCharCodeAt(text, 2 * size + 1));
        if (high < 0 || low < 0) break;
        bytes[size++] = high * 16 + low;
      }
      return copyBytes(bytes, 0, size);
    }
    default: return decodeBase64(text);
  }
}

/// Base64 as Node reads it: both alphabets, padding or not, anything else skipped.
function decodeBase64(text) {
  const bytes = new NativeUint8Array(mathFloor(text.length * 3 / 4) + 3);
  let size = 0, bits = 0, count = 0;
  for (let i = 0; i < text.length; ++i) {
    const code = stringCharCodeAt(text, i);
    let digit;
    if (code >= 0x41 && code <= 0x5a) digit = code - 0x41;
    else if (code >= 0x61 && code <= 0x7a) digit = code - 0x61 + 26;
    else if (code >= 0x30 && code <= 0x39) digit = code - 0x30 + 52;
    else if (code === 0x2b || code === 0x2d) digit = 62;
    else if (code === 0x2f || code === 0x5f) digit = 63;
    else if (code === 0x3d) break;
    else continue;
    bits = bits << 6 | digit;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes[size++] = bits >> count & 255;
    }
  }
  return copyBytes(bytes, 0, size);
}

const base64Url = { __proto__: null, alphabet: 'base64url', omitPadding: true };

function decodeBytes(bytes, encoding, from = 0, to = typedArrayLength(bytes)) {
  const part = () => new NativeUint8Array(typedArrayBuffer(bytes), typedArrayByteOffset(bytes) + from, mathMax(0, to - from));
  switch (normalEncoding(encoding, decodeBytes)) {
    case 'utf8': return utf8Decode(bytes, from, to);
    case 'latin1': return decodeLatin1(bytes, from, to);
    case 'ascii': return decodeLatin1(arrayMap(part(), (byte) => byte & 127));
    case 'utf16le': {
      const some = part();
      return decodeUtf16((i) => some[i] + some[i + 1] * 256, typedArrayLength(some) & ~1);
    }
    case 'hex': return uint8ToHex(part());
    case 'base64': return uint8ToBase64(part());
    default: return uint8ToBase64(part(), base64Url);
  }
}

/// A Buffer over an ArrayBuffer, or over a view's bytes, without a copy.
function bufferOver(source) {
  if (kindOf(source) === 'ArrayBuffer') return new Buffer(source, 0, arrayBufferByteLength(source));
  return new Buffer(typedArrayBuffer(source), typedArrayByteOffset(source), typedArrayLength(source));
}

class Buffer extends Uint8Array {
  static poolSize = 8192;
  static from(value, encoding, length) {
    if (typeof value === 'string') return bufferOver(encodeText(value, encoding));
    if (isObject(value)) {
      const kind = kindOf(value);
      if (kind === 'ArrayBuffer') {
        const offset = encoding === undefined ? 0 : +encoding;
        return new Buffer(value, offset, length === undefined ? arrayBufferByteLength(value) - offset : length);
      }
      if (kind === 'String') return Buffer.from(stringValueOf(value), encoding);
      const list = value.type === 'Buffer' && arrayIsArray(value.data) ? value.data : value;
      if (isView(list) || arrayIsArray(list) || typeof list[symbolIterator] === 'function' || typeof list.length === 'number') {
        const items = isView(list) ? list : arrayFrom(list), buffer = new Buffer(items.length);
        for (let i = 0; i < items.length; ++i) buffer[i] = items[i];
        return buffer;
      }
    }
    throw typeError('ERR_INVALID_ARG_TYPE', `The first argument must be of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object. Received ${received(value)}`, Buffer.from);
  }
  static alloc(size, fill, encoding) {
    checkBufferSize(size, Buffer.alloc);
    const buffer = new Buffer(size);
    return fill === undefined || fill === 0 ? buffer : buffer.fill(fill, encoding);
  }
  static allocUnsafe(size) { checkBufferSize(size, Buffer.allocUnsafe); return new Buffer(size); }
  static allocUnsafeSlow(size) { checkBufferSize(size, Buffer.allocUnsafeSlow); return new Buffer(size); }
  static isBuffer(value) { return isObject(value) && isBuffer(value); }
  static isEncoding(name) { try { normalEncoding(name); return typeof name === 'string' && name !== ''; } catch { return false; } }
  static byteLength(value, encoding) {
    return typeof value === 'string' ? typedArrayLength(encodeText(value, encoding)) : typedArrayLength(bytesOf(value));
  }
  static concat(list, total) {
    let size = 0;
    for (let i = 0; i < list.length; ++i) size += typedArrayLength(list[i]);
    if (total === undefined) total = size;
    const out = new Buffer(total);
    let at = 0;
    for (let i = 0; i < list.length && at < total; ++i) {
      const room = total - at;
      const part = typedArrayLength(list[i]) > room ? new NativeUint8Array(typedArrayBuffer(list[i]), typedArrayByteOffset(list[i]), room) : list[i];
      typedArraySet(out, part, at);
      at += typedArrayLength(part);
    }
    return out;
  }
  static compare(a, b) { return compareBytes(a, b); }
  toString(encoding, from = 0, to = this.length) {
    from = mathMax(0, mathTrunc(from) || 0);
    to = mathMin(this.length, mathTrunc(to) || 0);
    return from >= to ? '' : decodeBytes(this, encoding, from, to);
  }
  toLocaleString(encoding, from, to) { return this.toString(encoding, from, to); }
  toJSON() { return { type: 'Buffer', data: arrayMap(this, (byte) => byte) }; }
  equals(other) { return compareBytes(this, other) === 0; }
  compare(other, otherFrom = 0, otherTo = other.length, from = 0, to = this.length) {
    return compareBytes(this.subarray(from, to), other.subarray(otherFrom, otherTo));
  }
  slice(from, to) { return this.subarray(from, to); }
  subarray(from = 0, to = this.length) {
    const size = this.length, clamp = (n) => { n = mathTrunc(+n) || 0; return n < 0 ? mathMax(0, size + n) : mathMin(n, size); };
    const start = clamp(from), end = mathMax(start, clamp(to));
    return new Buffer(typedArrayBuffer(this), typedArrayByteOffset(this) + start, end - start);
  }
  copy(target, at = 0, from = 0, to = this.length) {
    const size = mathMax(0, mathMin(to - from, typedArrayLength(target) - at));
    typedArraySet(target, new NativeUint8Array(typedArrayBuffer(this), typedArrayByteOffset(this) + from, size), at);
    return size;
  }
  write(text, at = 0, length, encoding) {
    if (typeof at === 'string') { encoding = at; at = 0; length = undefined; }
    else if (typeof length === 'string') { encoding = length; length = undefined; }
    const bytes = encodeText(text, encoding), size = mathMin(typedArrayLength(bytes), length ?? Infinity, this.length - at);
    typedArraySet(this, new NativeUint8Array(typedArrayBuffer(bytes), 0, size), at);
    return size;
  }
  fill(value, from = 0, to = this.length, encoding) {
    if (typeof from === 'string') { encoding = from; from = 0; to = this.length; }
    if (typeof value === 'number' || typeof value === 'boolean') return typedArrayFill(this, value, from, to);
    const bytes = typeof value === 'string' ? encodeText(value, encoding) : bytesOf(value), size = typedArrayLength(bytes);
    if (size === 0) return typedArrayFill(this, 0, from, to);
    for (let i = from; i < to; ++i) this[i] = bytes[(i - from) % size];
    return this;
  }
  indexOf(value, from = 0, encoding) {
    if (typeof from === 'string') { encoding = from; from = 0; }
    if (typeof value === 'number') return typedArrayIndexOf(this, value & 255, from);
    const bytes = typeof value === 'string' ? encodeText(value, encoding) : bytesOf(value), size = typedArrayLength(bytes);
    if (from < 0) from = mathMax(0, this.length + from);
    for (let i = from; i + size <= this.length; ++i) {
      let k = 0;
      while (k < size && this[i + k] === bytes[k]) ++k;
      if (k === size) return i;
    }
    return -1;
  }
  lastIndexOf(value, from = this.length, encoding) {
    const bytes = typeof value === 'number' ? [value & 255] : typeof value === 'string' ? encodeText(value, encoding) : bytesOf(value);
    for (let i = mathMin(from, this.length - bytes.length); i >= 0; --i) {
      let k = 0;
      while (k < bytes.length && this[i + k] === bytes[k]) ++k;
      if (k === bytes.length) return i;
    }
    return -1;
  }
  includes(value, from, encoding) { return this.indexOf(value, from, encoding) >= 0; }
  swap16() { return swapBytes(this, 2); }
  swap32() { return swapBytes(this, 4); }
  swap64() { return swapBytes(this, 8); }
  readUIntBE(at, size) { checkRange(this, at, size); let n = 0; for (let i = 0; i < size; ++i) n = n * 256 + this[at + i]; return n; }
  readUIntLE(at, size) { checkRange(this, at, size); let n = 0; for (let i = size - 1; i >= 0; --i) n = n * 256 + this[at + i]; return n; }
  readIntBE(at, size) { const n = this.readUIntBE(at, size), half = 2 ** (8 * size - 1); return n >= half ? n - 2 * half : n; }
  readIntLE(at, size) { const n = this.readUIntLE(at, size), half = 2 ** (8 * size - 1); return n >= half ? n - 2 * half : n; }
  writeUIntBE(value, at, size) { checkRange(this, at, size); for (let i = size - 1; i >= 0; --i) { this[at + i] = value % 256; value = mathFloor(value / 256); } return at + size; }
  writeUIntLE(value, at, size) { checkRange(this, at, size); for (let i = 0; i < size; ++i) { this[at + i] = value % 256; value = mathFloor(value / 256); } return at + size; }
  writeIntBE(value, at, size) { return this.writeUIntBE(value < 0 ? value + 2 ** (8 * size) : value, at, size); }
  writeIntLE(value, at, size) { return this.writeUIntLE(value < 0 ? value + 2 ** (8 * size) : value, at, size); }
}

function checkBufferSize(size, boundary) {
  if (typeof size !== 'number') throw typeError('ERR_INVALID_ARG_TYPE', `The "size" argument must be of type number. Received ${received(size)}`, boundary);
  if (!(size >= 0 && size <= 4294967295)) throw rangeError('size', '>= 0 && <= 4294967295', size, boundary);
}

function rangeError(name, range, value, boundary) {
  const error = atCaller(new NativeRangeError(`The value of "${name}" is out of range. It must be ${range}. Received ${inspect(value)}`), boundary);
  put(error, 'code', 'ERR_OUT_OF_RANGE');
  return error;
}

function checkRange(buffer, at, size) {
  if (size > buffer.length) {
    const error = atCaller(new NativeRangeError('Attempt to access memory outside buffer bounds'), checkRange);
    put(error, 'code', 'ERR_BUFFER_OUT_OF_BOUNDS');
    throw error;
  }
  if (!numberIsInteger(at) || at < 0 || at + size > buffer.length) {
    throw rangeError('offset', `>= 0 and <= ${buffer.length - size}`, at, checkRange);
  }
}

function compareBytes(a, b) {
  const x = bytesOf(a), y = bytesOf(b);
  if (x === null || y === null) throw typeError('ERR_INVALID_ARG_TYPE', 'The arguments must be instances of Buffer or Uint8Array', compareBytes);
  const size = mathMin(typedArrayLength(x), typedArrayLength(y));
  for (let i = 0; i < size; ++i) if (x[i] !== y[i]) return x[i] < y[i] ? -1 : 1;
  return typedArrayLength(x) === typedArrayLength(y) ? 0 : typedArrayLength(x) < typedArrayLength(y) ? -1 : 1;
}

function swapBytes(buffer, size) {
  if (buffer.length % size !== 0) throw atCaller(new NativeRangeError(`Buffer size must be a multiple of ${8 * size}-bits`), swapBytes);
  for (let i = 0; i < buffer.length; i += size) {
    for (let k = 0; k < size / 2; ++k) {
      const other = i + size - 1 - k, byte = buffer[i + k];
      buffer[i + k] = buffer[other];
      buffer[other] = byte;
    }
  }
  return buffer;
}

// The fixed-size readers and writers, over a DataView of the same bytes.
const dataViewMethods = [['UInt8', 'Uint8', 1], ['Int8', 'Int8', 1], ['UInt16', 'Uint16', 2], ['Int16', 'Int16', 2],
                         ['UInt32', 'Uint32', 4], ['Int32', 'Int32', 4], ['Float', 'Float32', 4], ['Double', 'Float64', 8],
                         ['BigInt64', 'BigInt64', 8], ['BigUInt64', 'BigUint64', 8]];
for (const [name, type, size] of dataViewMethods) {
  const get = uncurry(DataView.prototype[`get${type}`]), set = uncurry(DataView.prototype[`set${type}`]);
  const view = (buffer) => new NativeDataView(typedArrayBuffer(buffer), typedArrayByteOffset(buffer), typedArrayByteLength(buffer));
  for (const order of size === 1 ? [''] : ['LE', 'BE']) {
    const read = function (at = 0) { checkRange(this, at, size); return get(view(this), at, order === 'LE'); };
    const write = function (value, at = 0) { checkRange(this, at, size); set(view(this), at, value, order === 'LE'); return at + size; };
    method(Buffer.prototype, `read${name}${order}`, read);
    method(Buffer.prototype, `write${name}${order}`, write);
    const alias = stringReplaceAll(name, 'UInt', 'Uint');
    if (alias !== name) {
      put(Buffer.prototype, `read${alias}${order}`, read, false);
      put(Buffer.prototype, `write${alias}${order}`, write, false);
    }
  }
}
