// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// crypto of the web platform: random values and digests. The bytes come from the host.

const integerArrays = { __proto__: null, Int8Array: 1, Uint8Array: 1, Uint8ClampedArray: 1, Int16Array: 1, Uint16Array: 1,
                        Int32Array: 1, Uint32Array: 1, BigInt64Array: 1, BigUint64Array: 1 };
const digestNames = { __proto__: null, 'SHA-1': 'SHA1', 'SHA-256': 'SHA256', 'SHA-384': 'SHA384', 'SHA-512': 'SHA512' };

class SubtleCrypto {
  async digest(algorithm, data) {
    const name = stringToUpperCase(`${isObject(algorithm) ? algorithm.name : algorithm}`);
    if (digestNames[name] === undefined) throw new NativeDOMException('Unrecognized algorithm name', 'NotSupportedError');
    const bytes = bytesOf(data);
    if (bytes === null) throw typeError('ERR_INVALID_ARG_TYPE', `The "data" argument must be an instance of ArrayBuffer or ArrayBufferView. Received ${received(data)}`, this.digest);
    return hostDigest(digestNames[name], bytes);
  }
}
put(SubtleCrypto.prototype, symbolToStringTag, 'SubtleCrypto', false);
const subtle = new SubtleCrypto();

/// An ArrayBuffer, or undefined when the host knows no such algorithm.
function hostDigest(name, bytes) {
  return host.digest(name, typedArrayBuffer(bytes), typedArrayByteOffset(bytes), typedArrayLength(bytes));
}

function fillRandom(view) {
  host.randomFill(typedArrayBuffer(view), typedArrayByteOffset(view), typedArrayByteLength(view));
}

class Crypto {
  get subtle() { return subtle; }
  getRandomValues(array) {
    if (!isView(array) || integerArrays[typedArrayTag(array)] === undefined) {
      throw atCaller(new NativeDOMException('The data argument must be an integer-type TypedArray', 'TypeMismatchError'), this.getRandomValues);
    }
    if (typedArrayByteLength(array) > 65536) {
      throw atCaller(new NativeDOMException(`The requested length exceeds 65,536 bytes`, 'QuotaExceededError'), this.getRandomValues);
    }
    fillRandom(array);
    return array;
  }
  randomUUID() {
    const bytes = new NativeUint8Array(16);
    fillRandom(bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    const hex = uint8ToHex(bytes);
    return `${stringSlice(hex, 0, 8)}-${stringSlice(hex, 8, 12)}-${stringSlice(hex, 12, 16)}-${stringSlice(hex, 16, 20)}-${stringSlice(hex, 20)}`;
  }
}
put(Crypto.prototype, symbolToStringTag, 'Crypto', false);
const webCrypto = new Crypto();

// ---- node:crypto, the part that needs no keys -------------------------------------------------------------

const hashNames = { __proto__: null, md5: 'MD5', sha1: 'SHA1', sha224: 'SHA224', sha256: 'SHA256', sha384: 'SHA384', sha512: 'SHA512' };

function hashName(name, boundary) {
  const known = hashNames[stringReplaceAll(stringToLowerCase(`${name}`), '-', '')];
  if (known === undefined) throw atCaller(new NativeError(`Digest method not supported: ${name}`), boundary);
  return known;
}

function dataBytes(data, encoding) {
  if (typeof data === 'string') return encodeText(data, encoding ?? 'utf8');
  const bytes = bytesOf(data);
  if (bytes === null) throw typeError('ERR_INVALID_ARG_TYPE', `The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${received(data)}`, dataBytes);
  return bytes;
}

/// What update() was given so far. Room for it doubles, so that many small pieces are not copied again with each. A large
/// piece is copied a little at a time: between two copies the run can be stopped.
class Collected {
  #room = noBytes; #length = 0;
  add(bytes) {
    const length = typedArrayLength(bytes), needed = this.#length + length;
    if (needed > typedArrayLength(this.#room)) {
      const before = this.#room;
      this.#room = new NativeUint8Array(this.#length === 0 ? needed : mathMax(needed, 2 * typedArrayLength(before)));
      copyInPieces(this.#room, 0, before, this.#length);
    }
    copyInPieces(this.#room, this.#length, bytes, length);
    this.#length = needed;
  }
  get bytes() { return new NativeUint8Array(typedArrayBuffer(this.#room), 0, this.#length); }
}

const copiedAtOnce = 4 * 1024 * 1024;

function copyInPieces(to, at, from, length) {
  const buffer = typedArrayBuffer(from), offset = typedArrayByteOffset(from);
  for (let done = 0; done < length; done += copiedAtOnce) {
    typedArraySet(to, new NativeUint8Array(buffer, offset + done, mathMin(copiedAtOnce, length - done)), at + done);
  }
}

class Hash {
  #name; #data = new Collected(); #done = false;
  constructor(name) { this.#name = name; }
  update(data, encoding) {
    if (this.#done) throw atCaller(new NativeError('Digest already called'), this.update);
    this.#data.add(dataBytes(data, encoding));
    return this;
  }
  digest(encoding) {
    if (this.#done) throw atCaller(new NativeError('Digest already called'), this.digest);
    this.#done = true;
    const result = bufferOver(hostDigest(this.#name, this.#data.bytes));
    return encoding === undefined || encoding === 'buffer' ? result : result.toString(encoding);
  }
}

class Hmac {
  #name; #outer; #data = new Collected();
  constructor(name, key) {
    const block = name === 'SHA384' || name === 'SHA512' ? 128 : 64;
    let bytes = dataBytes(key);
    if (typedArrayLength(bytes) > block) bytes = new NativeUint8Array(hostDigest(name, bytes));
    this.#name = name;
    const inner = new NativeUint8Array(block);
    this.#outer = new NativeUint8Array(block);
    for (let i = 0; i < block; ++i) {
      const byte = i < typedArrayLength(bytes) ? bytes[i] : 0;
      inner[i] = byte ^ 0x36;
      this.#outer[i] = byte ^ 0x5c;
    }
    this.#data.add(inner);
  }
  update(data, encoding) { this.#data.add(dataBytes(data, encoding)); return this; }
  digest(encoding) {
    const inner = new NativeUint8Array(hostDigest(this.#name, this.#data.bytes));
    const result = bufferOver(hostDigest(this.#name, joinBytes(this.#outer, inner)));
    return encoding === undefined || encoding === 'buffer' ? result : result.toString(encoding);
  }
}

const nodeCrypto = {
  createHash(name) { return new Hash(hashName(name, nodeCrypto.createHash)); },
  createHmac(name, key) { return new Hmac(hashName(name, nodeCrypto.createHmac), key); },
  getHashes() { return objectKeys(hashNames); },
  randomBytes(size) {
    const buffer = bufferOver(new NativeArrayBuffer(size));
    fillRandom(buffer);
    return buffer;
  },
  randomInt(low, high) {
    if (high === undefined) { high = low; low = 0; }
    const range = high - low, bytes = new NativeUint8Array(6);
    if (!(numberIsSafeInteger(low) && numberIsSafeInteger(high) && range > 0 && range <= 281474976710655)) {
      throw atCaller(new NativeRangeError('The value of "max" is out of range'), nodeCrypto.randomInt);
    }
    // Draw again where the last, incomplete block of the range would make some numbers more likely.
    const limit = 281474976710656 - 281474976710656 % range;
    for (;;) {
      fillRandom(bytes);
      let value = 0;
      for (let i = 0; i < 6; ++i) value = value * 256 + bytes[i];
      if (value < limit) return low + value % range;
    }
  },
  randomUUID() { return webCrypto.randomUUID(); },
  randomFillSync(view) { fillRandom(view); return view; },
  getRandomValues(array) { return webCrypto.getRandomValues(array); },
  timingSafeEqual(a, b) {
    const x = bytesOf(a), y = bytesOf(b);
    if (typedArrayLength(x) !== typedArrayLength(y)) throw atCaller(new NativeRangeError('Input buffers must have the same byte length'), nodeCrypto.timingSafeEqual);
    let difference = 0;
    for (let i = 0; i < typedArrayLength(x); ++i) difference |= x[i] ^ y[i];
    return difference === 0;
  },
  webcrypto: webCrypto,
  subtle,
};
