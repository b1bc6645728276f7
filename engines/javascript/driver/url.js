// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// URL and URLSearchParams after the WHATWG URL standard: a state machine over the code points of the input.
// Domain names outside ASCII need IDNA tables that this engine does not have: they are refused, not guessed at.

const specialPorts = { __proto__: null, 'http': 80, 'https': 443, 'ws': 80, 'wss': 443, 'ftp': 21, 'file': null };
const isSpecialScheme = (scheme) => specialPorts[scheme] !== undefined;

// Percent-encode sets, each the one before it plus a few characters; controls and non-ASCII always belong.
const makeSet = (base, extra) => {
  const set = objectAssign(objectCreate(null), base);
  for (let i = 0; i < extra.length; ++i) set[extra[i]] = true;
  return set;
};
const c0Set = objectCreate(null);
const fragmentSet = makeSet(c0Set, ' "<>`');
const querySet = makeSet(c0Set, ' "#<>');
const specialQuerySet = makeSet(querySet, "'");
const pathSet = makeSet(querySet, '?^`{}');
const userinfoSet = makeSet(pathSet, '/:;=@[\\]|');
const formSet = makeSet(userinfoSet, "$%&+,!'()~");

function percentEncode(text, set, spaceAsPlus = false) {
  let out = '';
  for (let i = 0; i < text.length; ++i) {
    const code = stringCharCodeAt(text, i);
    if (code === 0x20 && spaceAsPlus) { out += '+'; continue; }
    if (code > 0x1f && code < 0x7f && set[text[i]] === undefined) { out += text[i]; continue; }
    let point = stringCodePointAt(text, i);
    if (point > 0xffff) ++i;
    else if (point >= 0xd800 && point <= 0xdfff) point = 0xfffd;
    if (point < 0x80) out += hexByte(point);
    else if (point < 0x800) out += hexByte(0xc0 | point >> 6) + hexByte(0x80 | point & 63);
    else if (point < 0x10000) out += hexByte(0xe0 | point >> 12) + hexByte(0x80 | point >> 6 & 63) + hexByte(0x80 | point & 63);
    else out += hexByte(0xf0 | point >> 18) + hexByte(0x80 | point >> 12 & 63) + hexByte(0x80 | point >> 6 & 63) + hexByte(0x80 | point & 63);
  }
  return out;
}

function hexByte(byte) {
  return `%${stringToUpperCase(stringPadStart(numberToString(byte, 16), 2, '0'))}`;
}

function hexDigit(code) {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  code |= 0x20;
  return code >= 0x61 && code <= 0x66 ? code - 0x57 : -1;
}

/// Percent-decodes to text; bytes that are not UTF-8 become U+FFFD.
function percentDecode(text) {
  if (!stringIncludes(text, '%')) return text;
  const encoded = utf8Encode(text), bytes = new NativeUint8Array(typedArrayLength(encoded));
  let size = 0;
  for (let i = 0; i < typedArrayLength(encoded); ++i) {
    if (encoded[i] === 0x25 && i + 2 < typedArrayLength(encoded)) {
      const high = hexDigit(encoded[i + 1]), low = hexDigit(encoded[i + 2]);
      if (high >= 0 && low >= 0) { bytes[size++] = high * 16 + low; i += 2; continue; }
    }
    bytes[size++] = encoded[i];
  }
  return utf8Decode(bytes, 0, size);
}

// ---- hosts ------------------------------------------------------------------------------------------------

const forbiddenHost = /[\0\t\n\r #/:<>?@[\\\]^|]/;
const forbiddenDomain = /[\0-\x20"#%/:<>?@[\\\]^`{|}\x7f]/;

/// The host in serialised form, or undefined when it is not valid.
function parseHost(text, special) {
  if (text[0] === '[') {
    if (text[text.length - 1] !== ']') return undefined;
    const pieces = parseIPv6(stringSlice(text, 1, -1));
    return pieces === undefined ? undefined : `[${serializeIPv6(pieces)}]`;
  }
  if (!special) return regexpExec(forbiddenHost, text) !== null ? undefined : percentEncode(text, c0Set);
  const domain = domainToAscii(stringToWellFormed(percentDecode(text)));
  if (domain === undefined || domain === '' || regexpExec(forbiddenDomain, domain) !== null) return undefined;
  return endsInNumber(domain) ? parseIPv4(domain) : domain;
}

const ignoredInDomain = /[\u00ad\u200b\u2060\ufeff\ufe00-\ufe0f]/g;
const nonAscii = /[^\0-\x7f]/;

/// What IDNA's mapping does for names that end up in ASCII: case, width and compatibility forms, ignored
/// characters. Anything that stays outside ASCII would need the full tables: undefined.
function domainToAscii(domain) {
  if (regexpExec(nonAscii, domain) !== null) {
    let kept = '', from = 0, match;
    ignoredInDomain.lastIndex = 0;
    while ((match = regexpExec(ignoredInDomain, domain)) !== null) {
      kept += stringSlice(domain, from, match.index);
      from = match.index + match[0].length;
    }
    domain = stringReplaceAll(stringNormalize(kept + stringSlice(domain, from), 'NFKC'), '\u3002', '.');
    domain = stringToLowerCase(domain);
    if (regexpExec(nonAscii, domain) !== null) return undefined;
  }
  domain = stringToLowerCase(domain);
  const labels = stringSplit(domain, '.');
  for (let i = 0; i < labels.length; ++i) {
    if (stringStartsWith(labels[i], 'xn--') && !isPunycode(stringSlice(labels[i], 4))) return undefined;
  }
  return domain;
}

/// True when the text after xn-- decodes to at least one character outside ASCII.
function isPunycode(text) {
  const split = stringLastIndexOf(text, '-');
  let at = split < 0 ? 0 : split + 1, size = split < 0 ? 0 : split;
  if (at >= text.length) return false;
  let point = 128, index = 0, bias = 72;
  while (at < text.length) {
    const before = index;
    let weight = 1;
    for (let k = 36; ; k += 36) {
      if (at >= text.length) return false;
      const code = stringCharCodeAt(text, at++);
      const digit = code >= 0x30 && code <= 0x39 ? code - 22 : code >= 0x61 && code <= 0x7a ? code - 0x61 : 36;
      if (digit >= 36) return false;
      index += digit * weight;
      if (index > 0x7fffffff) return false;
      const threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
      if (digit < threshold) break;
      weight *= 36 - threshold;
    }
    ++size;
    let delta = before === 0 ? mathFloor((index - before) / 700) : mathFloor((index - before) / 2), k = 0;
    delta += mathFloor(delta / size);
    for (; delta > 455; k += 36) delta = mathFloor(delta / 35);
    bias = k + mathFloor(36 * delta / (delta + 38));
    point += mathFloor(index / size);
    index %= size;
    if (point > 0x10ffff || point < 0xa0) return false;
    ++index;
  }
  return true;
}

function endsInNumber(domain) {
  const parts = stringSplit(domain, '.');
  if (parts[parts.length - 1] === '') {
    if (parts.length === 1) return false;
    arrayPop(parts);
  }
  const last = parts[parts.length - 1];
  return regexpExec(/^[0-9]+$/, last) !== null || parseIPv4Number(last) !== undefined;
}

function parseIPv4Number(text) {
  if (text === '') return undefined;
  let radix = 10;
  if (text.length >= 2 && text[0] === '0' && (text[1] === 'x' || text[1] === 'X')) { text = stringSlice(text, 2); radix = 16; }
  else if (text.length >= 2 && text[0] === '0') { text = stringSlice(text, 1); radix = 8; }
  if (text === '') return 0;
  const pattern = radix === 10 ? /^[0-9]+$/ : radix === 16 ? /^[0-9a-fA-F]+$/ : /^[0-7]+$/;
  return regexpExec(pattern, text) === null ? undefined : numberParseInt(text, radix);
}

function parseIPv4(text) {
  const parts = stringSplit(text, '.');
  if (parts[parts.length - 1] === '' && parts.length > 1) arrayPop(parts);
  if (parts.length > 4) return undefined;
  const numbers = [];
  for (let i = 0; i < parts.length; ++i) {
    const number = parseIPv4Number(parts[i]);
    if (number === undefined || (number > 255 && i + 1 < parts.length)) return undefined;
    arrayPush(numbers, number);
  }
  const last = numbers[numbers.length - 1];
  if (last >= 256 ** (5 - numbers.length)) return undefined;
  let address = last;
  for (let i = 0; i + 1 < numbers.length; ++i) address += numbers[i] * 256 ** (3 - i);
  return `${mathFloor(address / 16777216)}.${mathFloor(address / 65536) % 256}.${mathFloor(address / 256) % 256}.${address % 256}`;
}

function parseIPv6(text) {
  const address = [0, 0, 0, 0, 0, 0, 0, 0];
  let piece = 0, compress = -1, at = 0;
  const isHex = (i) => i < text.length && hexDigit(stringCharCodeAt(text, i)) >= 0;
  const isDigit = (i) => i < text.length && text[i] >= '0' && text[i] <= '9';
  if (text[at] === ':') {
    if (text[at + 1] !== ':') return undefined;
    at += 2;
    compress = ++piece;
  }
  while (at < text.length) {
    if (piece === 8) return undefined;
    if (text[at] === ':') {
      if (compress >= 0) return undefined;
      ++at;
      compress = ++piece;
      continue;
    }
    let value = 0, length = 0;
    for (; length < 4 && isHex(at); ++length, ++at) value = value * 16 + hexDigit(stringCharCodeAt(text, at));
    if (text[at] === '.') {
      if (length === 0 || piece > 6) return undefined;
      at -= length;
      let seen = 0;
      while (at < text.length) {
        let octet = -1;
        if (seen > 0) {
          if (text[at] !== '.' || seen >= 4) return undefined;
          ++at;
        }
        if (!isDigit(at)) return undefined;
        for (; isDigit(at); ++at) {
          const digit = +text[at];
          if (octet === -1) octet = digit;
          else if (octet === 0) return undefined;
          else octet = octet * 10 + digit;
          if (octet > 255) return undefined;
        }
        address[piece] = address[piece] * 256 + octet;
        ++seen;
        if (seen === 2 || seen === 4) ++piece;
      }
      if (seen !== 4) return undefined;
      break;
    }
    if (text[at] === ':') {
      ++at;
      if (at === text.length) return undefined;
    } else if (at < text.length) {
      return undefined;
    }
    address[piece++] = value;
  }
  if (compress >= 0) {
    let swaps = piece - compress;
    piece = 7;
    while (piece !== 0 && swaps > 0) {
      const other = compress + swaps - 1, value = address[piece];
      address[piece] = address[other];
      address[other] = value;
      --piece;
      --swaps;
    }
  } else if (piece !== 8) {
    return undefined;
  }
  return address;
}

function serializeIPv6(address) {
  let longest = 1, start = -1;
  for (let i = 0; i < 8; ++i) {
    let end = i;
    while (end < 8 && address[end] === 0) ++end;
    if (end - i > longest) { longest = end - i; start = i; }
    if (end > i) i = end;
  }
  let out = '';
  for (let i = 0; i < 8; ++i) {
    if (i === start) {
      out += i === 0 ? '::' : ':';
      i += longest - 1;
      continue;
    }
    out += numberToString(address[i], 16);
    if (i < 7) out += ':';
  }
  return out;
}

// ---- the parser -------------------------------------------------------------------------------------------

const isAlpha = (c) => c !== undefined && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
const isDigitChar = (c) => c !== undefined && c >= '0' && c <= '9';
const driveLetter = /^[a-zA-Z][:|]$/, normalDriveLetter = /^[a-zA-Z]:$/;
const startsWithDriveLetter = /^[a-zA-Z][:|]([/\\?#]|$)/;
const singleDot = (s) => s === '.' || stringToLowerCase(s) === '%2e';
const doubleDot = (s) => {
  s = stringToLowerCase(s);
  return s === '..' || s === '.%2e' || s === '%2e.' || s === '%2e%2e';
};

function newRecord() {
  return { __proto__: null, scheme: '', username: '', password: '', host: null, port: null, path: [], opaque: false, query: null, fragment: null };
}

function shortenPath(url) {
  if (url.scheme === 'file' && url.path.length === 1 && regexpExec(normalDriveLetter, url.path[0]) !== null) return;
  if (url.path.length > 0) arrayPop(url.path);
}

const tabsAndNewlines = /[\t\n\r]/;

function removeAll(text, characters) {
  if (regexpExec(tabsAndNewlines, text) === null) return text;
  let out = '';
  for (let i = 0; i < text.length; ++i) if (!stringIncludes(characters, text[i])) out += text[i];
  return out;
}

function trimControls(text) {
  let from = 0, to = text.length;
  while (from < to && stringCharCodeAt(text, from) <= 0x20) ++from;
  while (to > from && stringCharCodeAt(text, to - 1) <= 0x20) --to;
  return stringSlice(text, from, to);
}

/// Parses `input`; with `override` (a state's name) it only changes the part of `url` that a setter names.
/// Returns the record, or undefined when the input is not valid.
function parseUrl(input, base, url, override) {
  if (url === undefined) {
    url = newRecord();
    input = trimControls(input);
  }
  input = removeAll(input, '\t\n\r');
  let state = override ?? 'scheme start', at = 0, buffer = '';
  let atSeen = false, inBrackets = false, passwordSeen = false;
  const special = () => isSpecialScheme(url.scheme);

  for (; ; ++at) {
    const c = at < input.length ? input[at] : undefined;  // undefined is the end of the input
    switch (state) {
      case 'scheme start':
        if (isAlpha(c)) { buffer += stringToLowerCase(c); state = 'scheme'; }
        else if (override === undefined) { state = 'no scheme'; --at; }
        else return undefined;
        break;
      case 'scheme':
        if (isAlpha(c) || isDigitChar(c) || c === '+' || c === '-' || c === '.') {
          buffer += stringToLowerCase(c);
        } else if (c === ':') {
          if (override !== undefined) {
            if (isSpecialScheme(url.scheme) !== isSpecialScheme(buffer)) return url;
            if (buffer === 'file' && (url.username !== '' || url.password !== '' || url.port !== null)) return url;
            if (url.scheme === 'file' && (url.host === null || url.host === '')) return url;
          }
          url.scheme = buffer;
          if (override !== undefined) {
            if (url.port === specialPorts[url.scheme]) url.port = null;
            return url;
          }
          buffer = '';
          if (url.scheme === 'file') state = 'file';
          else if (special() && base !== undefined && base.scheme === url.scheme) state = 'special relative or authority';
          else if (special()) state = 'special authority slashes';
          else if (input[at + 1] === '/') { state = 'path or authority'; ++at; }
          else { url.path = ''; url.opaque = true; state = 'opaque path'; }
        } else if (override === undefined) {
          buffer = '';
          state = 'no scheme';
          at = -1;
        } else {
          return undefined;
        }
        break;
      case 'no scheme':
        if (base === undefined || (base.opaque && c !== '#')) return undefined;
        if (base.opaque) {
          url.scheme = base.scheme; url.path = base.path; url.opaque = true; url.query = base.query;
          url.fragment = '';
          state = 'fragment';
        } else {
          state = base.scheme === 'file' ? 'file' : 'relative';
          --at;
        }
        break;
      case 'special relative or authority':
        if (c === '/' && input[at + 1] === '/') { state = 'special authority ignore slashes'; ++at; }
        else { state = 'relative'; --at; }
        break;
      case 'path or authority':
        if (c === '/') state = 'authority';
        else { state = 'path'; --at; }
        break;
      case 'relative':
        url.scheme = base.scheme;
        if (c === '/') state = 'relative slash';
        else if (special() && c === '\\') state = 'relative slash';
        else {
          url.username = base.username; url.password = base.password; url.host = base.host; url.port = base.port;
          url.path = arraySlice(base.path); url.query = base.query;
          if (c === '?') { url.query = ''; state = 'query'; }
          else if (c === '#') { url.fragment = ''; state = 'fragment'; }
          else if (c !== undefined) { url.query = null; shortenPath(url); state = 'path'; --at; }
        }
        break;
      case 'relative slash':
        if (special() && (c === '/' || c === '\\')) state = 'special authority ignore slashes';
        else if (c === '/') state = 'authority';
        else {
          url.username = base.username; url.password = base.password; url.host = base.host; url.port = base.port;
          state = 'path';
          --at;
        }
        break;
      case 'special authority slashes':
        if (c === '/' && input[at + 1] === '/') { state = 'special authority ignore slashes'; ++at; }
        else { state = 'special authority ignore slashes'; --at; }
        break;
      case 'special authority ignore slashes':
        if (c !== '/' && c !== '\\') { state = 'authority'; --at; }
        break;
      case 'authority':
        if (c === '@') {
          if (atSeen) buffer = `%40${buffer}`;
          atSeen = true;
          for (let i = 0; i < buffer.length; ++i) {
            if (buffer[i] === ':' && !passwordSeen) { passwordSeen = true; continue; }
            const pair = stringFromCodePoint(stringCodePointAt(buffer, i));
            if (passwordSeen) url.password += percentEncode(pair, userinfoSet);
            else url.username += percentEncode(pair, userinfoSet);
            i += pair.length - 1;
          }
          buffer = '';
        } else if (c === undefined || c === '/' || c === '?' || c === '#' || (special() && c === '\\')) {
          if (atSeen && buffer === '') return undefined;
          at -= buffer.length + 1;
          buffer = '';
          state = 'host';
        } else {
          buffer += c;
        }
        break;
      case 'host': case 'hostname':
        if (override !== undefined && url.scheme === 'file') { --at; state = 'file host'; }
        else if (c === ':' && !inBrackets) {
          if (buffer === '') return undefined;
          if (override === 'hostname') return undefined;
          const parsed = parseHost(buffer, special());
          if (parsed === undefined) return undefined;
          url.host = parsed;
          buffer = '';
          state = 'port';
        } else if (c === undefined || c === '/' || c === '?' || c === '#' || (special() && c === '\\')) {
          --at;
          if (special() && buffer === '') return undefined;
          if (override !== undefined && buffer === '' && (url.username !== '' || url.password !== '' || url.port !== null)) return undefined;
          const parsed = parseHost(buffer, special());
          if (parsed === undefined) return undefined;
          url.host = parsed;
          buffer = '';
          state = 'path start';
          if (override !== undefined) return url;
        } else {
          if (c === '[') inBrackets = true;
          else if (c === ']') inBrackets = false;
          buffer += c;
        }
        break;
      case 'port':
        if (isDigitChar(c)) buffer += c;
        else if (c === undefined || c === '/' || c === '?' || c === '#' || (special() && c === '\\') || override !== undefined) {
          if (buffer !== '') {
            const port = +buffer;
            if (port > 65535) return undefined;
            url.port = port === specialPorts[url.scheme] ? null : port;
            buffer = '';
            if (override !== undefined) return url;
          }
          if (override !== undefined) return undefined;
          state = 'path start';
          --at;
        } else {
          return undefined;
        }
        break;
      case 'file':
        url.scheme = 'file';
        url.host = '';
        if (c === '/' || c === '\\') state = 'file slash';
        else if (base !== undefined && base.scheme === 'file') {
          url.host = base.host; url.path = arraySlice(base.path); url.query = base.query;
          if (c === '?') { url.query = ''; state = 'query'; }
          else if (c === '#') { url.fragment = ''; state = 'fragment'; }
          else if (c !== undefined) {
            url.query = null;
            if (regexpExec(startsWithDriveLetter, stringSlice(input, at)) === null) shortenPath(url);
            else url.path = [];
            state = 'path';
            --at;
          }
        } else { state = 'path'; --at; }
        break;
      case 'file slash':
        if (c === '/' || c === '\\') state = 'file host';
        else {
          if (base !== undefined && base.scheme === 'file') {
            url.host = base.host;
            if (regexpExec(startsWithDriveLetter, stringSlice(input, at)) === null && base.path.length > 0 &&
                regexpExec(normalDriveLetter, base.path[0]) !== null) arrayPush(url.path, base.path[0]);
          }
          state = 'path';
          --at;
        }
        break;
      case 'file host':
        if (c === undefined || c === '/' || c === '\\' || c === '?' || c === '#') {
          --at;
          if (override === undefined && regexpExec(driveLetter, buffer) !== null) state = 'path';
          else if (buffer === '') {
            url.host = '';
            if (override !== undefined) return url;
            state = 'path start';
          } else {
            let parsed = parseHost(buffer, special());
            if (parsed === undefined) return undefined;
            if (parsed === 'localhost') parsed = '';
            url.host = parsed;
            if (override !== undefined) return url;
            buffer = '';
            state = 'path start';
          }
        } else {
          buffer += c;
        }
        break;
      case 'path start':
        if (special()) {
          state = 'path';
          if (c !== '/' && c !== '\\') --at;
        } else if (override === undefined && c === '?') { url.query = ''; state = 'query'; }
        else if (override === undefined && c === '#') { url.fragment = ''; state = 'fragment'; }
        else if (c !== undefined) { state = 'path'; if (c !== '/') --at; }
        else if (override !== undefined && url.host === null) arrayPush(url.path, '');
        break;
      case 'path': {
        const slash = c === '/' || (special() && c === '\\');
        if (c === undefined || slash || (override === undefined && (c === '?' || c === '#'))) {
          if (doubleDot(buffer)) {
            shortenPath(url);
            if (!slash) arrayPush(url.path, '');
          } else if (singleDot(buffer)) {
            if (!slash) arrayPush(url.path, '');
          } else {
            if (url.scheme === 'file' && url.path.length === 0 && regexpExec(driveLetter, buffer) !== null) buffer = `${buffer[0]}:`;
            arrayPush(url.path, buffer);
          }
          buffer = '';
          if (c === '?') { url.query = ''; state = 'query'; }
          if (c === '#') { url.fragment = ''; state = 'fragment'; }
        } else {
          const pair = stringFromCodePoint(stringCodePointAt(input, at));
          buffer += percentEncode(pair, pathSet);
          at += pair.length - 1;
        }
        break;
      }
      case 'opaque path':
        if (c === '?') { url.query = ''; state = 'query'; }
        else if (c === '#') { url.fragment = ''; state = 'fragment'; }
        else if (c === ' ') {
          const next = input[at + 1];
          url.path += next === '?' || next === '#' ? '%20' : ' ';
        } else if (c !== undefined) {
          const pair = stringFromCodePoint(stringCodePointAt(input, at));
          url.path += percentEncode(pair, c0Set);
          at += pair.length - 1;
        }
        break;
      case 'query':
        if ((override === undefined && c === '#') || c === undefined) {
          url.query += percentEncode(buffer, special() ? specialQuerySet : querySet);
          buffer = '';
          if (c === '#') { url.fragment = ''; state = 'fragment'; }
        } else {
          buffer += c;
        }
        break;
      case 'fragment':
        if (c === undefined) url.fragment += percentEncode(buffer, fragmentSet);
        else buffer += c;
        break;
    }
    if (at >= input.length) return url;
  }
}

function serializePath(url) {
  if (url.opaque) return url.path;
  let out = '';
  for (let i = 0; i < url.path.length; ++i) out += `/${url.path[i]}`;
  return out;
}

function serializeUrl(url, withFragment = true) {
  let out = `${url.scheme}:`;
  if (url.host !== null) {
    out += '//';
    if (url.username !== '' || url.password !== '') {
      out += url.username + (url.password !== '' ? `:${url.password}` : '') + '@';
    }
    out += url.host + (url.port !== null ? `:${url.port}` : '');
  } else if (!url.opaque && url.path.length > 1 && url.path[0] === '') {
    out += '/.';
  }
  out += serializePath(url);
  if (url.query !== null) out += `?${url.query}`;
  if (withFragment && url.fragment !== null) out += `#${url.fragment}`;
  return out;
}

function originOf(url) {
  if (url.scheme === 'blob') {
    const inner = url.opaque ? parseUrl(url.path) : undefined;
    return inner !== undefined && (inner.scheme === 'http' || inner.scheme === 'https') ? originOf(inner) : 'null';
  }
  if (!isSpecialScheme(url.scheme) || url.scheme === 'file') return 'null';
  return `${url.scheme}://${url.host}${url.port !== null ? `:${url.port}` : ''}`;
}

// ---- application/x-www-form-urlencoded --------------------------------------------------------------------

function parseForm(text) {
  const pairs = [], pieces = stringSplit(text, '&');
  for (let i = 0; i < pieces.length; ++i) {
    if (pieces[i] === '') continue;
    const split = stringIndexOf(pieces[i], '='), decode = (part) => percentDecode(stringReplaceAll(part, '+', ' '));
    arrayPush(pairs, split < 0 ? [decode(pieces[i]), ''] : [decode(stringSlice(pieces[i], 0, split)), decode(stringSlice(pieces[i], split + 1))]);
  }
  return pairs;
}

function serializeForm(pairs) {
  let out = '';
  for (let i = 0; i < pairs.length; ++i) {
    out += `${i > 0 ? '&' : ''}${percentEncode(pairs[i][0], formSet, true)}=${percentEncode(pairs[i][1], formSet, true)}`;
  }
  return out;
}

const usv = (value) => stringToWellFormed(`${value}`);
const searchIteratorPrototype = objectCreate(getPrototypeOf(getPrototypeOf([][symbolIterator]())));
const searchIteratorStates = new NativeWeakMap();
method(searchIteratorPrototype, 'next', function next() {
  const state = weakMapGet(searchIteratorStates, this);
  if (state === undefined) throw atCaller(new NativeTypeError('not a URLSearchParams iterator'), next);
  if (state.at >= state.pairs().length) return { value: undefined, done: true };
  const pair = state.pairs()[state.at++];
  return { value: state.kind === 0 ? [pair[0], pair[1]] : pair[state.kind - 1], done: false };
});
put(searchIteratorPrototype, symbolToStringTag, 'URLSearchParams Iterator', false);

class URLSearchParams {
  #pairs = []; #url = null;
  constructor(init) {
    if (init === undefined || init === null) return;
    if (!isObject(init)) {
      init = usv(init);
      this.#pairs = parseForm(init[0] === '?' ? stringSlice(init, 1) : init);
    } else if (#pairs in init) {
      this.#pairs = arrayMap(init.#pairs, (pair) => [pair[0], pair[1]]);
    } else if (typeof init[symbolIterator] === 'function') {
      const items = arrayFrom(init);
      for (let i = 0; i < items.length; ++i) {
        const pair = isObject(items[i]) ? arrayFrom(items[i]) : undefined;
        if (pair === undefined || pair.length !== 2) {
          throw typeError('ERR_INVALID_TUPLE', 'Each query pair must be an iterable [name, value] tuple', URLSearchParams);
        }
        arrayPush(this.#pairs, [usv(pair[0]), usv(pair[1])]);
      }
    } else {
      const keys = reflectOwnKeys(init);
      for (let i = 0; i < keys.length; ++i) {
        if (typeof keys[i] === 'symbol') continue;
        const descriptor = getOwnPropertyDescriptor(init, keys[i]);
        if (descriptor !== undefined && descriptor.enumerable) this.#set(usv(keys[i]), usv(init[keys[i]]));
      }
    }
  }
  #set(name, value) {
    let found = false;
    this.#pairs = arrayFilter(this.#pairs, (pair) => {
      if (pair[0] !== name) return true;
      if (found) return false;
      found = true;
      pair[1] = value;
      return true;
    });
    if (!found) arrayPush(this.#pairs, [name, value]);
  }
  #changed() {
    if (this.#url === null) return;
    const text = serializeForm(this.#pairs);
    this.#url.query = text === '' ? null : text;
  }
  #iterate(kind) {
    const iterator = objectCreate(searchIteratorPrototype);
    weakMapSet(searchIteratorStates, iterator, { __proto__: null, pairs: () => this.#pairs, kind, at: 0 });
    return iterator;
  }
  get size() { return this.#pairs.length; }
  append(name, value) { arrayPush(this.#pairs, [usv(name), usv(value)]); this.#changed(); }
  delete(name, value) {
    name = usv(name);
    const wanted = value === undefined ? undefined : usv(value);
    this.#pairs = arrayFilter(this.#pairs, (pair) => pair[0] !== name || (wanted !== undefined && pair[1] !== wanted));
    this.#changed();
  }
  get(name) {
    name = usv(name);
    for (let i = 0; i < this.#pairs.length; ++i) if (this.#pairs[i][0] === name) return this.#pairs[i][1];
    return null;
  }
  getAll(name) {
    name = usv(name);
    return arrayMap(arrayFilter(this.#pairs, (pair) => pair[0] === name), (pair) => pair[1]);
  }
  has(name, value) {
    name = usv(name);
    const wanted = value === undefined ? undefined : usv(value);
    for (let i = 0; i < this.#pairs.length; ++i) {
      if (this.#pairs[i][0] === name && (wanted === undefined || this.#pairs[i][1] === wanted)) return true;
    }
    return false;
  }
  set(name, value) { this.#set(usv(name), usv(value)); this.#changed(); }
  sort() {
    arraySort(this.#pairs, (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
    this.#changed();
  }
  forEach(callback, self) {
    if (typeof callback !== 'function') throw typeError('ERR_INVALID_ARG_TYPE', `The "callback" argument must be of type function. Received ${received(callback)}`, this.forEach);
    for (let i = 0; i < this.#pairs.length; ++i) reflectApply(callback, self, [this.#pairs[i][1], this.#pairs[i][0], this]);
  }
  keys() { return this.#iterate(1); }
  values() { return this.#iterate(2); }
  entries() { return this.#iterate(0); }
  toString() { return serializeForm(this.#pairs); }
  [inspectCustom](depth, options) {
    const parts = arrayMap(this.#pairs, (pair) => `${quote(pair[0])} => ${quote(pair[1])}`);
    return parts.length === 0 ? 'URLSearchParams {}' : `URLSearchParams { ${arrayJoin(parts, ', ')} }`;
  }
  static _attach(params, url) { params.#url = url; }
  static _reload(params, url) { params.#pairs = url.query === null ? [] : parseForm(url.query); }
}
const { _attach: attachParams, _reload: reloadParams } = URLSearchParams;
delete URLSearchParams._attach;
delete URLSearchParams._reload;
put(URLSearchParams.prototype, symbolIterator, URLSearchParams.prototype.entries, false);
put(URLSearchParams.prototype, symbolToStringTag, 'URLSearchParams', false);

function invalidUrl(input, base, boundary) {
  const error = typeError('ERR_INVALID_URL', 'Invalid URL', boundary);
  put(error, 'input', input);
  if (base !== undefined) put(error, 'base', base);
  return error;
}

class URL {
  #record; #params = null;
  constructor(input, base) {
    if (arguments.length === 0) throw typeError('ERR_MISSING_ARGS', 'The "url" argument must be specified', URL);
    input = usv(input);
    let baseRecord;
    if (base !== undefined) {
      base = usv(base);
      baseRecord = parseUrl(base);
      if (baseRecord === undefined) throw invalidUrl(input, base, URL);
    }
    const record = parseUrl(input, baseRecord);
    if (record === undefined) throw invalidUrl(input, base, URL);
    this.#record = record;
  }
  static canParse(input, base) { return URL.parse(input, base) !== null; }
  static parse(input, base) {
    try { return base === undefined ? new URL(input) : new URL(input, base); } catch { return null; }
  }
  get href() { return serializeUrl(this.#record); }
  set href(value) {
    value = usv(value);
    const record = parseUrl(value);
    if (record === undefined) throw invalidUrl(value, undefined, URL);
    objectAssign(this.#record, record);
    if (this.#params !== null) reloadParams(this.#params, this.#record);
  }
  get origin() { return originOf(this.#record); }
  get protocol() { return `${this.#record.scheme}:`; }
  set protocol(value) { parseUrl(`${usv(value)}:`, undefined, this.#record, 'scheme start'); }
  get username() { return this.#record.username; }
  set username(value) { if (this.#hasAuthority()) this.#record.username = percentEncode(usv(value), userinfoSet); }
  get password() { return this.#record.password; }
  set password(value) { if (this.#hasAuthority()) this.#record.password = percentEncode(usv(value), userinfoSet); }
  #hasAuthority() {
    const url = this.#record;
    return url.host !== null && url.host !== '' && url.scheme !== 'file';
  }
  get host() {
    const { host: name, port } = this.#record;
    return name === null ? '' : port === null ? name : `${name}:${port}`;
  }
  set host(value) { this.#override(usv(value), 'host'); }
  get hostname() { return this.#record.host ?? ''; }
  set hostname(value) { this.#override(usv(value), 'hostname'); }
  get port() { return this.#record.port === null ? '' : `${this.#record.port}`; }
  set port(value) {
    if (!this.#hasAuthority()) return;
    value = usv(value);
    if (value === '') this.#record.port = null;
    else this.#override(value, 'port');
  }
  get pathname() { return serializePath(this.#record); }
  set pathname(value) {
    if (this.#record.opaque) return;
    this.#record.path = [];
    parseUrl(usv(value), undefined, this.#record, 'path start');
  }
  get search() { return this.#record.query === null || this.#record.query === '' ? '' : `?${this.#record.query}`; }
  set search(value) {
    value = usv(value);
    if (value === '') {
      this.#record.query = null;
    } else {
      this.#record.query = '';
      parseUrl(value[0] === '?' ? stringSlice(value, 1) : value, undefined, this.#record, 'query');
    }
    if (this.#params !== null) reloadParams(this.#params, this.#record);
  }
  get searchParams() {
    if (this.#params === null) {
      this.#params = new URLSearchParams();
      reloadParams(this.#params, this.#record);
      attachParams(this.#params, this.#record);
    }
    return this.#params;
  }
  get hash() { return this.#record.fragment === null || this.#record.fragment === '' ? '' : `#${this.#record.fragment}`; }
  set hash(value) {
    value = usv(value);
    if (value === '') { this.#record.fragment = null; return; }
    this.#record.fragment = '';
    parseUrl(value[0] === '#' ? stringSlice(value, 1) : value, undefined, this.#record, 'fragment');
  }
  /// A setter's parse works on a copy, so that a failure half way changes nothing.
  #override(value, state) {
    if (this.#record.opaque) return;
    const copy = objectAssign(newRecord(), this.#record);
    if (!this.#record.opaque) copy.path = arraySlice(this.#record.path);
    if (parseUrl(value, undefined, copy, state) !== undefined) {
      objectAssign(this.#record, copy);
    } else if (state === 'host' && copy.host !== this.#record.host) {
      objectAssign(this.#record, copy);  // a good host before a bad port counts
    }
  }
  toString() { return serializeUrl(this.#record); }
  toJSON() { return serializeUrl(this.#record); }
  [inspectCustom](depth, options) {
    if (typeof depth === 'number' && depth < 0) return '[URL]';
    const shown = {
      href: this.href, origin: this.origin, protocol: this.protocol, username: this.username, password: this.password,
      host: this.host, hostname: this.hostname, port: this.port, pathname: this.pathname, search: this.search,
      searchParams: this.searchParams, hash: this.hash,
    };
    return `URL ${inspect(shown, { compact: options?.compact ?? 3, breakLength: options?.breakLength ?? 80, depth })}`;
  }
}
for (const name of ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname',
                    'search', 'searchParams', 'hash', 'toString', 'toJSON']) {
  defineProperty(URL.prototype, name, { __proto__: null, enumerable: true });
}
put(URL.prototype, symbolToStringTag, 'URL', false);
