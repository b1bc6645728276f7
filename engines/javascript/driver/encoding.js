// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// TextEncoder, TextDecoder. The host converts UTF-8; UTF-16 and windows-1252 are done here.

function utf8Encode(text) {
  return new NativeUint8Array(host.utf8Encode(text));
}

/// Lossy: ill-formed sequences become U+FFFD as the WHATWG standard counts them.
function utf8Decode(bytes, from = 0, to = typedArrayLength(bytes)) {
  return host.utf8Decode(typedArrayBuffer(bytes), typedArrayByteOffset(bytes) + from, to - from);
}

class TextEncoder {
  get encoding() { return 'utf-8'; }
  encode(text = '') { return utf8Encode(`${text}`); }
  encodeInto(text, target) {
    if (typedArrayTag(target) !== 'Uint8Array') {
      throw typeError('ERR_INVALID_ARG_TYPE', `The "dest" argument must be an instance of Uint8Array. Received ${received(target)}`, this.encodeInto);
    }
    text = `${text}`;
    const room = typedArrayLength(target);
    let read = 0, written = 0;
    while (read < text.length) {
      const point = stringCodePointAt(text, read);
      const size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
      if (written + size > room) break;
      const bytes = size === 1 ? undefined : utf8Encode(stringFromCodePoint(point));
      if (bytes === undefined) target[written] = point;
      else for (let i = 0; i < size; ++i) target[written + i] = bytes[i];
      written += size;
      read += point > 0xffff ? 2 : 1;
    }
    return { read, written };
  }
}
put(TextEncoder.prototype, symbolToStringTag, 'TextEncoder', false);

const encodingLabels = objectCreate(null);
for (const label of ['utf-8', 'utf8', 'unicode-1-1-utf-8', 'unicode11utf8', 'unicode20utf8', 'x-unicode20utf8']) encodingLabels[label] = 'utf-8';
for (const label of ['utf-16le', 'utf-16', 'ucs-2', 'unicode', 'unicodefeff', 'iso-10646-ucs-2', 'csunicode']) encodingLabels[label] = 'utf-16le';
for (const label of ['utf-16be', 'unicodefffe']) encodingLabels[label] = 'utf-16be';
for (const label of ['latin1', 'iso-8859-1', 'iso8859-1', 'iso88591', 'iso_8859-1', 'iso_8859-1:1987', 'l1', 'ascii', 'us-ascii',
                     'windows-1252', 'cp1252', 'x-cp1252', 'ansi_x3.4-1968', 'cp819', 'csisolatin1', 'ibm819', 'iso-ir-100']) {
  encodingLabels[label] = 'windows-1252';
}
const windows1252 = '\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f' +
                    '\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178';

/// Bytes at the end of a UTF-8 chunk that may be the start of a sequence which the next chunk completes.
function incompleteTail(bytes) {
  const size = typedArrayLength(bytes);
  for (let back = 1; back <= mathMin(3, size); ++back) {
    const byte = bytes[size - back];
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const need = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : byte < 0xf5 ? 4 : 0;
    if (need <= back || byte < 0xc2) return 0;
    if (back > 1) {
      // A second byte out of its lead's range makes the lead an error already.
      const second = bytes[size - back + 1];
      if ((byte === 0xe0 && second < 0xa0) || (byte === 0xed && second > 0x9f) ||
          (byte === 0xf0 && second < 0x90) || (byte === 0xf4 && second > 0x8f)) return 0;
    }
    return back;
  }
  return 0;
}

function joinBytes(first, second) {
  const out = new NativeUint8Array(typedArrayLength(first) + typedArrayLength(second));
  typedArraySet(out, first);
  typedArraySet(out, second, typedArrayLength(first));
  return out;
}

const noBytes = new NativeUint8Array(0);

class TextDecoder {
  #encoding; #fatal; #ignoreBom; #pending = noBytes; #bomSeen = false;
  constructor(label = 'utf-8', options) {
    const encoding = encodingLabels[stringToLowerCase(stringTrim(`${label}`))];
    if (encoding === undefined) {
      const error = atCaller(new NativeRangeError(`The "${label}" encoding is not supported`), TextDecoder);
      put(error, 'code', 'ERR_ENCODING_NOT_SUPPORTED');
      throw error;
    }
    this.#encoding = encoding;
    this.#fatal = !!options?.fatal;
    this.#ignoreBom = !!options?.ignoreBOM;
  }
  get encoding() { return this.#encoding; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#ignoreBom; }
  decode(input, options) {
    let bytes = input === undefined ? noBytes : bytesOf(input);
    if (bytes === null) {
      throw typeError('ERR_INVALID_ARG_TYPE', `The "list" argument must be an instance of ArrayBuffer or ArrayBufferView. Received ${received(input)}`, this.decode);
    }
    const stream = !!options?.stream;
    if (typedArrayLength(this.#pending) > 0) bytes = joinBytes(this.#pending, bytes);
    this.#pending = noBytes;
    let text;
    if (this.#encoding === 'utf-8') text = this.#decodeUtf8(bytes, stream);
    else if (this.#encoding === 'windows-1252') text = decodeWindows1252(bytes);
    else text = this.#decodeUtf16(bytes, stream);
    if (!this.#ignoreBom && !this.#bomSeen && this.#encoding !== 'windows-1252' && text.length > 0) {
      if (stringCharCodeAt(text, 0) === 0xfeff) text = stringSlice(text, 1);
      this.#bomSeen = true;
    }
    if (!stream) this.#bomSeen = false;
    return text;
  }
  #invalid() {
    this.#pending = noBytes;
    this.#bomSeen = false;
    return typeError('ERR_ENCODING_INVALID_ENCODED_DATA', `The encoded data was not valid for encoding ${this.#encoding}`, this.decode);
  }
  #decodeUtf8(bytes, stream) {
    let size = typedArrayLength(bytes);
    if (stream) {
      size -= incompleteTail(bytes);
      this.#pending = copyBytes(bytes, size, typedArrayLength(bytes));
    }
    if (this.#fatal && !host.utf8Valid(typedArrayBuffer(bytes), typedArrayByteOffset(bytes), size)) throw this.#invalid();
    return utf8Decode(bytes, 0, size);
  }
  #decodeUtf16(bytes, stream) {
    const big = this.#encoding === 'utf-16be', size = typedArrayLength(bytes), even = size & ~1;
    const unit = (i) => (big ? bytes[i] * 256 + bytes[i + 1] : bytes[i] + bytes[i + 1] * 256);
    let end = even;
    if (stream && end >= 2) {
      const last = unit(end - 2);
      if (last >= 0xd800 && last <= 0xdbff) end -= 2;
    }
    let text = decodeUtf16(unit, end);
    if (stream) {
      this.#pending = new NativeUint8Array(size - end);
      for (let i = end; i < size; ++i) this.#pending[i - end] = bytes[i];
    } else if (even !== size) {
      if (this.#fatal) throw this.#invalid();
      const last = text.length > 0 ? stringCharCodeAt(text, text.length - 1) : 0;
      if (!(last >= 0xd800 && last <= 0xdbff)) text += '\ufffd';  // else one error for the half pair and the byte
    }
    const formed = stringToWellFormed(text);
    if (this.#fatal && formed !== text) throw this.#invalid();
    return formed;
  }
}
put(TextDecoder.prototype, symbolToStringTag, 'TextDecoder', false);

function decodeUtf16(unit, end) {
  let text = '', codes = [];
  for (let i = 0; i < end; i += 2) {
    arrayPush(codes, unit(i));
    if (codes.length === 4096) { text += reflectApply(stringFromCharCode, null, codes); codes = []; }
  }
  return text + reflectApply(stringFromCharCode, null, codes);
}

function decodeLatin1(bytes, from = 0, to = typedArrayLength(bytes)) {
  let text = '', codes = [];
  for (let i = from; i < to; ++i) {
    arrayPush(codes, bytes[i]);
    if (codes.length === 4096) { text += reflectApply(stringFromCharCode, null, codes); codes = []; }
  }
  return text + reflectApply(stringFromCharCode, null, codes);
}

function decodeWindows1252(bytes) {
  const text = decodeLatin1(bytes);
  let out = '', from = 0;
  for (let i = 0; i < text.length; ++i) {
    const code = stringCharCodeAt(text, i);
    if (code < 0x80 || code > 0x9f) continue;
    out += stringSlice(text, from, i) + windows1252[code - 0x80];
    from = i + 1;
  }
  return out + stringSlice(text, from);
}
