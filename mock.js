const host={readText(p){try{return fs.readFileSync(p.replace('/usr/share/javascript','/workspace'),'utf8')}catch{return 2}},environment:()=>JSON.stringify(process.env)};
const captureStackTrace=()=>{};
// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Private copies of the language's own functions, taken before any user code ran. The driver calls these
// and never looks anything up on a prototype or a global that user code can change.
//
// uncurry(f)(self, ...args) is f.call(self, ...args) without the lookup of `call`.

const uncurry = Function.prototype.bind.bind(Function.prototype.call);
const getterOf = (prototype, key) => uncurry(Object.getOwnPropertyDescriptor(prototype, key).get);

const {
  apply: reflectApply, ownKeys: reflectOwnKeys, getPrototypeOf, setPrototypeOf,
  defineProperty, getOwnPropertyDescriptor,
} = Reflect;
const {
  create: objectCreate, keys: objectKeys, is: objectIs, assign: objectAssign,
} = Object;
const hasOwn = uncurry(Object.prototype.hasOwnProperty);
const isEnumerable = uncurry(Object.prototype.propertyIsEnumerable);
const objectPrototype = Object.prototype;
const functionToString = uncurry(Function.prototype.toString);

const NativeObject = Object, NativeString = String, NativeNumber = Number, NativeBigInt = BigInt;
const NativeMap = Map, NativeSet = Set, NativePromise = Promise, NativeDate = Date;
const NativeRegExp = RegExp, NativeArrayBuffer = ArrayBuffer, NativeUint8Array = Uint8Array, NativeDataView = DataView;
const NativeFloat64Array = Float64Array, NativeWeakMap = WeakMap;
const NativeError = Error, NativeTypeError = TypeError, NativeRangeError = RangeError, NativeSyntaxError = SyntaxError;
const NativeDOMException = DOMException, NativeBoolean = Boolean;
const NativeSymbol = Symbol, nativeCaptureStackTrace = Error.captureStackTrace, nativeStack = getterOf(Error.prototype, 'stack');
const symbolIterator = Symbol.iterator, symbolToStringTag = Symbol.toStringTag, symbolAsyncIterator = Symbol.asyncIterator;
const symbolFor = Symbol.for, symbolToString = uncurry(Symbol.prototype.toString);
const symbolDescription = getterOf(Symbol.prototype, 'description');

const arrayIsArray = Array.isArray, arrayFrom = Array.from;
const arrayPush = uncurry(Array.prototype.push), arrayPop = uncurry(Array.prototype.pop);
const arrayShift = uncurry(Array.prototype.shift), arrayUnshift = uncurry(Array.prototype.unshift);
const arrayJoin = uncurry(Array.prototype.join), arrayIndexOf = uncurry(Array.prototype.indexOf);
const arrayIncludes = uncurry(Array.prototype.includes), arraySort = uncurry(Array.prototype.sort);

const stringSlice = uncurry(String.prototype.slice), stringIndexOf = uncurry(String.prototype.indexOf);
const stringLastIndexOf = uncurry(String.prototype.lastIndexOf), stringCharCodeAt = uncurry(String.prototype.charCodeAt);
const stringCodePointAt = uncurry(String.prototype.codePointAt), stringSplit = uncurry(String.prototype.split);
const stringReplaceAll = uncurry(String.prototype.replaceAll), stringStartsWith = uncurry(String.prototype.startsWith);
const stringEndsWith = uncurry(String.prototype.endsWith), stringIncludes = uncurry(String.prototype.includes);
const stringRepeat = uncurry(String.prototype.repeat), stringPadStart = uncurry(String.prototype.padStart);
const stringPadEnd = uncurry(String.prototype.padEnd), stringTrim = uncurry(String.prototype.trim);
const stringToLowerCase = uncurry(String.prototype.toLowerCase), stringToUpperCase = uncurry(String.prototype.toUpperCase);
const stringToWellFormed = uncurry(String.prototype.toWellFormed), stringNormalize = uncurry(String.prototype.normalize);
const stringFromCharCode = String.fromCharCode, stringFromCodePoint = String.fromCodePoint;
const stringValueOf = uncurry(String.prototype.valueOf);

const numberValueOf = uncurry(Number.prototype.valueOf), booleanValueOf = uncurry(Boolean.prototype.valueOf);
const bigintValueOf = uncurry(BigInt.prototype.valueOf), symbolValueOf = uncurry(Symbol.prototype.valueOf);
const numberToString = uncurry(Number.prototype.toString), numberToFixed = uncurry(Number.prototype.toFixed);
const numberToPrecision = uncurry(Number.prototype.toPrecision);
const numberIsInteger = Number.isInteger, numberIsSafeInteger = Number.isSafeInteger, numberIsNaN = Number.isNaN;
const numberIsFinite = Number.isFinite;
const numberParseInt = parseInt, numberParseFloat = parseFloat;
const { floor: mathFloor, min: mathMin, max: mathMax, round: mathRound, sqrt: mathSqrt, trunc: mathTrunc, abs: mathAbs } = Math;

const mapGet = uncurry(Map.prototype.get), mapSet = uncurry(Map.prototype.set), mapHas = uncurry(Map.prototype.has);
const mapDelete = uncurry(Map.prototype.delete), mapForEach = uncurry(Map.prototype.forEach);
const mapSize = getterOf(Map.prototype, 'size');
const setHas = uncurry(Set.prototype.has), setAdd = uncurry(Set.prototype.add), setForEach = uncurry(Set.prototype.forEach);
const setSize = getterOf(Set.prototype, 'size');
const weakMapGet = uncurry(WeakMap.prototype.get), weakMapSet = uncurry(WeakMap.prototype.set);
const weakRefDeref = uncurry(WeakRef.prototype.deref);

const promiseThen = uncurry(Promise.prototype.then);
const promiseResolve = Promise.resolve.bind(Promise);
const dateNow = Date.now, dateGetTime = uncurry(Date.prototype.getTime), dateToISOString = uncurry(Date.prototype.toISOString);
const regexpExec = uncurry(RegExp.prototype.exec);
const regexpSource = getterOf(RegExp.prototype, 'source'), regexpFlags = getterOf(RegExp.prototype, 'flags');

const typedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
const typedArrayLength = getterOf(typedArrayPrototype, 'length'), typedArrayBuffer = getterOf(typedArrayPrototype, 'buffer');
const typedArrayByteOffset = getterOf(typedArrayPrototype, 'byteOffset');
const typedArrayByteLength = getterOf(typedArrayPrototype, 'byteLength');
const typedArrayTag = getterOf(typedArrayPrototype, symbolToStringTag);
const typedArraySet = uncurry(typedArrayPrototype.set);
const typedArrayFill = uncurry(typedArrayPrototype.fill);
const typedArrayIndexOf = uncurry(typedArrayPrototype.indexOf);
const dataViewBuffer = getterOf(DataView.prototype, 'buffer'), dataViewByteOffset = getterOf(DataView.prototype, 'byteOffset');
const dataViewByteLength = getterOf(DataView.prototype, 'byteLength');
const arrayBufferByteLength = getterOf(ArrayBuffer.prototype, 'byteLength');
const arrayBufferSlice = uncurry(ArrayBuffer.prototype.slice), arrayBufferIsView = ArrayBuffer.isView;
const arrayBufferTransfer = uncurry(ArrayBuffer.prototype.transfer);
const uint8ToBase64 = uncurry(Uint8Array.prototype.toBase64), uint8ToHex = uncurry(Uint8Array.prototype.toHex);

const { stringify: jsonStringify, parse: jsonParse } = JSON;

/// Sets a property without running setters that user code put on a prototype.
function put(target, key, value, enumerable = true) {
  defineProperty(target, key, { __proto__: null, value, writable: true, enumerable, configurable: true });
}

/// A function for a public object: not enumerable, named as its key, as built-in methods are.
function method(target, name, fn) {
  defineProperty(fn, 'name', { __proto__: null, value: typeof name === 'symbol' ? `[${symbolDescription(name)}]` : name,
                               configurable: true });
  put(target, name, fn, false);
}

/// `error` without the driver's own frames: the trace starts at whoever called `boundary`.
function atCaller(error, boundary) {
  captureStackTrace(error, boundary);  // errors.js
  return error;
}

/// A TypeError as Node words and codes them.
function typeError(code, message, boundary) {
  const error = new NativeTypeError(message);
  put(error, 'code', code);
  return atCaller(error, boundary);
}

function isObject(value) {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

// Those array methods that ask an array for its constructor are written out: user code may have changed it.

function arraySlice(list, from = 0, to = list.length) {
  const out = [];
  for (let i = from; i < to; ++i) arrayPush(out, list[i]);
  return out;
}

function arrayMap(list, fn) {
  const out = [];
  for (let i = 0; i < list.length; ++i) arrayPush(out, fn(list[i], i));
  return out;
}

function arrayFilter(list, keep) {
  const out = [];
  for (let i = 0; i < list.length; ++i) if (keep(list[i])) arrayPush(out, list[i]);
  return out;
}

function arrayConcat(first, second) {
  const out = arraySlice(first);
  for (let i = 0; i < second.length; ++i) arrayPush(out, second[i]);
  return out;
}

function arrayRemoveAt(list, index) {
  for (let i = index; i + 1 < list.length; ++i) list[i] = list[i + 1];
  arrayPop(list);
}
// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// FormatJS's Intl, in the driver's own realm. Its text is given by the driver when a program first asks for it. What
// is thrown here is told as { error, message } and thrown anew, from the user's realm.

const answer = (work) => {
  try { return { value: work() }; } catch (error) { return { error: `${error?.name}`, message: `${error?.message ?? error}` }; }
};

globalThis.intl = {
  /// Its own check, whether a locale is missing, compares with every locale there is.
  load: (text) => answer(() => void (0, eval)(text.replaceAll('match([locale], supportedLocales, "en")', '"en"'))),
  setDefaultTimeZone: (zone) => answer(() => Intl.DateTimeFormat.__setDefaultTimeZone(zone)),
  make: (service, tags, options) => answer(() => new Intl[service](tags === '' ? undefined : tags.split(' '), options)),
  call: (object, method, ...values) => answer(() => object[method](...values)),
  /// The result as JSON: parts, options.
  list: (object, method, ...values) => answer(() => JSON.stringify(object[method](...values))),
  get: (object, name) => answer(() => object[name]),
  join: (object, method, text) => answer(() => object[method](JSON.parse(text))),
  joinToParts: (object, text) => answer(() => JSON.stringify(object.formatToParts(JSON.parse(text)))),
  dates: (object, method, from, to) => answer(() => { const text = object[method](new Date(from), to === undefined ? undefined : new Date(to)); return typeof text === 'string' ? text : JSON.stringify(text); }),
  /// Date.prototype.toLocaleString and its kin.
  dateText: (time, method, tags, options) => answer(() => new Date(time)[method](tags === '' ? undefined : tags.split(' '), options)),
  canonical: (tags) => answer(() => Intl.getCanonicalLocales(tags.split(' ')).join(' ')),
  segments: (object, text) => answer(() => JSON.stringify([...object.segment(text)].map(({ segment, index, isWordLike }) => ({ segment, index, isWordLike })))),
};
host.intl=globalThis.intl;
// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Intl for the user: thin objects over those of FormatJS in the driver's own realm, which is loaded from the read-only
// libraries when a program first asks for it, a service and a language at a time.

const intlFolder = '/usr/share/javascript';
const intlLoaded = objectCreate(null);
const intlInner = new NativeWeakMap();

/// Calls into the realm. What is thrown there, if only for want of stack, must not get out: its constructor leads in.
function intlAsk(name, first, second, third, fourth) {
  try {
    return host.intl[name](first, second, third, fourth);
  } catch {
    throw new NativeRangeError('Maximum call stack size exceeded');
  }
}

function intlValue(answer, boundary) {
  if (answer.error === undefined) return answer.value;
  const type = answer.error === 'RangeError' ? NativeRangeError : answer.error === 'TypeError' ? NativeTypeError : NativeError;
  throw atCaller(new type(answer.message), boundary);
}

function intlLoad(file) {
  if (intlLoaded[file] !== undefined) return intlLoaded[file];
  const text = host.readText(`${intlFolder}/${file}`);
  intlLoaded[file] = typeof text === 'string';
  if (intlLoaded[file]) intlValue(intlAsk('load', text), intlLoad);
  return intlLoaded[file];
}

const intlNeeds = {
  __proto__: null,
  Locale: [], PluralRules: [], NumberFormat: ['PluralRules'], DateTimeFormat: ['PluralRules', 'NumberFormat'],
  RelativeTimeFormat: ['PluralRules', 'NumberFormat'], ListFormat: [], DisplayNames: [], Segmenter: [],
};
const intlWithoutData = { __proto__: null, Locale: true, Segmenter: true };

/// The data's names for a tag, the nearest first: zh-TW is written in Hant.
function intlCandidates(tag) {
  const out = [], parts = stringSplit(tag, '-');
  if (parts[0] === 'zh' && (parts[1] === 'TW' || parts[1] === 'HK' || parts[1] === 'MO')) arrayPush(out, 'zh-Hant');
  if (parts[0] === 'no') arrayPush(out, 'nb');
  for (let length = parts.length; length > 0; --length) arrayPush(out, arrayJoin(arraySlice(parts, 0, length), '-'));
  return out;
}

/// Loads a service with the data of the first tag that has some. That tag, '' for none, and how the realm calls it.
function intlPrepare(service, tags) {
  intlLoad('intl-getcanonicallocales/polyfill.iife.js');
  intlLoad('intl-locale/polyfill.iife.js');
  const services = arrayConcat(intlNeeds[service], [service]);
  let found = '', known = 'en';
  for (let i = 0; i < services.length; ++i) {
    const name = stringToLowerCase(services[i]), first = intlLoaded[`intl-${name}/polyfill.iife.js`] === undefined;
    intlLoad(`intl-${name}/polyfill.iife.js`);
    if (intlWithoutData[services[i]]) continue;
    if (first) intlLoad(`intl-${name}/locale-data/en.js`);
    for (let k = 0; k < tags.length; ++k) {
      const candidates = intlCandidates(tags[k]);
      let has = false;
      for (let c = 0; c < candidates.length && !has; ++c) {
        has = intlLoad(`intl-${name}/locale-data/${candidates[c]}.js`);
        if (!has || i !== services.length - 1) continue;
        const extension = stringIndexOf(tags[k], '-u-');
        found = tags[k];
        known = candidates[c] + (extension < 0 ? '' : stringSlice(tags[k], extension));
      }
      if (has) break;
    }
  }
  return { found, known };
}

function intlTags(locales, boundary) {
  if (locales === undefined) return [];
  if (locales === null) throw atCaller(new NativeTypeError('Cannot convert undefined or null to object'), boundary);
  const list = typeof locales === 'string' || (isObject(locales) && weakMapGet(intlInner, locales) !== undefined) ? [locales] : locales;
  const given = [];
  for (let i = 0, length = +list.length || 0; i < length; ++i) {
    if (typeof list[i] !== 'string' && !isObject(list[i])) throw atCaller(new NativeTypeError(`Incorrect locale information provided`), boundary);
    arrayPush(given, `${list[i]}`);
  }
  if (given.length === 0) return given;
  for (let i = 0; i < given.length; ++i) {
    const tag = canonicalTag(given[i]);
    if (tag === undefined) throw atCaller(new NativeRangeError(`Incorrect locale information provided`), boundary);
    given[i] = tag;
  }
  return given;
}

/// Language, script and region in their usual case; undefined: it is no tag.
function canonicalTag(text) {
  const parts = stringSplit(stringToLowerCase(text), '-');
  if (regexpExec(/^([a-z]{2,3}|[a-z]{5,8})$/, parts[0]) === null) return undefined;
  for (let i = 1; i < parts.length && parts[i].length > 1; ++i) {
    if (parts[i].length === 4 && i === 1 && regexpExec(/^[a-z]{4}$/, parts[i]) !== null) parts[i] = stringToUpperCase(parts[i][0]) + stringSlice(parts[i], 1);
    else if (parts[i].length === 2 && i <= 2) parts[i] = stringToUpperCase(parts[i]);
    else if (parts[i].length === 2 || parts[i].length > 8) return undefined;
  }
  return parts[parts.length - 1].length === 1 ? undefined : arrayJoin(parts, '-');
}

/// A copy of the options that holds nothing of the user's but plain values.
function intlOptions(options) {
  const copy = objectCreate(null);
  if (options === undefined || options === null) return copy;
  const from = NativeObject(options);
  for (let i = 0; i < intlOptionNames.length; ++i) {
    const value = from[intlOptionNames[i]];
    if (value === undefined) continue;
    copy[intlOptionNames[i]] = typeof value === 'boolean' || typeof value === 'number' ? value : `${value}`;
  }
  return copy;
}
const intlOptionNames = stringSplit('localeMatcher numberingSystem style currency currencyDisplay currencySign unit unitDisplay notation compactDisplay '
  + 'signDisplay useGrouping minimumIntegerDigits minimumFractionDigits maximumFractionDigits minimumSignificantDigits maximumSignificantDigits '
  + 'roundingIncrement roundingMode roundingPriority trailingZeroDisplay calendar timeZone hour12 hourCycle formatMatcher weekday era year month '
  + 'day dayPeriod hour minute second fractionalSecondDigits timeZoneName dateStyle timeStyle type numeric fallback languageDisplay granularity '
  + 'usage sensitivity ignorePunctuation caseFirst language script region', ' ');

function intlZone() {
  const { TZ } = jsonParse(host.environment());
  return typeof TZ === 'string' && regexpExec(/^[A-Za-z_]+(\/[A-Za-z_+\-0-9]+)+$/, TZ) !== null ? TZ : 'UTC';
}

function intlDateOptions(options) {
  const copy = intlOptions(options);
  copy.timeZone ??= intlZone();
  if (stringToUpperCase(copy.timeZone) !== 'UTC') intlLoad('intl-datetimeformat/add-all-tz.js');
  return copy;
}

function intlMake(service, self, locales, options, boundary) {
  const tags = intlTags(locales, boundary), { found, known } = intlPrepare(service, tags);
  const copy = service === 'DateTimeFormat' ? intlDateOptions(options) : intlOptions(options);
  const object = intlValue(intlAsk('make', service, service === 'Locale' ? arrayJoin(tags, ' ') : known, copy), boundary);
  weakMapSet(intlInner, self, { __proto__: null, service, object, tag: found === '' ? 'en-US' : found });
  return self;
}

function intlOf(self, name, boundary) {
  const inner = isObject(self) ? weakMapGet(intlInner, self) : undefined;
  if (inner === undefined || inner.service !== name) throw atCaller(new NativeTypeError(`the receiver is no Intl.${name}`), boundary);
  return inner;
}

/// A constructor with the methods every service has. `callable`: also without `new`.
function intlService(name, methods, callable) {
  const made = function (locales, options) {
    if (new.target === undefined && !callable) throw atCaller(new NativeTypeError(`Constructor Intl.${name} requires 'new'`), made);
    return intlMake(name, new.target === undefined ? objectCreate(made.prototype) : this, locales, options, made);
  };
  defineProperty(made, 'name', { __proto__: null, value: name, configurable: true });
  defineProperty(made, 'length', { __proto__: null, value: 0, configurable: true });
  defineProperty(made, 'prototype', { __proto__: null, writable: false });
  put(made.prototype, 'constructor', made, false);
  put(made.prototype, symbolToStringTag, `Intl.${name}`, false);
  method(made, 'supportedLocalesOf', (locales) => {
    const tags = intlTags(locales, made.supportedLocalesOf), out = [];
    for (let i = 0; i < tags.length; ++i) if (intlPrepare(name, [tags[i]]).found !== '') arrayPush(out, tags[i]);
    return out;
  });
  const names = objectKeys(methods);
  for (let i = 0; i < names.length; ++i) method(made.prototype, names[i], methods[names[i]](name));
  method(made.prototype, 'resolvedOptions', function resolvedOptions() {
    const inner = intlOf(this, name, resolvedOptions);
    const options = jsonParse(intlValue(intlAsk('list', inner.object, 'resolvedOptions'), resolvedOptions));
    put(options, 'locale', inner.tag);
    return options;
  });
  return made;
}

/// `format` and `compare` are read as functions that need no receiver.
function boundGetter(made, key, name, work) {
  const getter = {
    get [key]() {
      const inner = intlOf(this, name, undefined);
      return inner.bound ??= work(inner);
    },
  };
  defineProperty(made.prototype, key, { __proto__: null, configurable: true, enumerable: false, get: getOwnPropertyDescriptor(getter, key).get });
}

const asNumber = (value) => (typeof value === 'bigint' || typeof value === 'number' ? value : typeof value === 'string' ? +value : +value);
const asTime = (value) => (value === undefined ? dateNow() : typeof value === 'number' ? value : +value);
const textMethod = (key) => (name) => function (value, more) { return intlValue(intlAsk('call', intlOf(this, name).object, key, asNumber(value), more === undefined ? undefined : `${more}`), undefined); };
const partsMethod = (key) => (name) => function (value, more) { return jsonParse(intlValue(intlAsk('list', intlOf(this, name).object, key, asNumber(value), more === undefined ? undefined : `${more}`), undefined)); };
const dateMethod = (key, isList) => (name) => function (from, to) {
  const text = intlValue(intlAsk('dates', intlOf(this, name).object, key, asTime(from), to === undefined ? undefined : +to), undefined);
  return isList ? jsonParse(text) : text;
};
function listText(list) {
  const items = [];
  for (const item of { __proto__: null, [symbolIterator]: () => list[symbolIterator]() }) {
    if (typeof item !== 'string') throw new NativeTypeError('Iterable yielded a value that is no string');
    arrayPush(items, item);
  }
  setPrototypeOf(items, null);
  return jsonStringify(items);
}

const intlObject = {};
(function makeIntl() {
  const number = intlService('NumberFormat', { formatToParts: partsMethod('formatToParts'), formatRange: () => function formatRange(from, to) { return intlValue(intlAsk('call', intlOf(this, 'NumberFormat').object, 'formatRange', asNumber(from), asNumber(to)), formatRange); } }, true);
  boundGetter(number, 'format', 'NumberFormat', (inner) => (value) => intlValue(intlAsk('call', inner.object, 'format', asNumber(value)), undefined));
  const dates = intlService('DateTimeFormat', { formatToParts: dateMethod('formatToParts', true), formatRange: dateMethod('formatRange', false), formatRangeToParts: dateMethod('formatRangeToParts', true) }, true);
  boundGetter(dates, 'format', 'DateTimeFormat', (inner) => (value) => intlValue(intlAsk('dates', inner.object, 'format', asTime(value)), undefined));
  const services = {
    __proto__: null, NumberFormat: number, DateTimeFormat: dates,
    PluralRules: intlService('PluralRules', { select: textMethod('select') }, false),
    RelativeTimeFormat: intlService('RelativeTimeFormat', { format: textMethod('format'), formatToParts: partsMethod('formatToParts') }, false),
    ListFormat: intlService('ListFormat', {
      format: (name) => function format(list) { return intlValue(intlAsk('join', intlOf(this, name).object, 'format', listText(list)), format); },
      formatToParts: (name) => function formatToParts(list) { return jsonParse(intlValue(intlAsk('joinToParts', intlOf(this, name).object, listText(list)), formatToParts)); },
    }, false),
    DisplayNames: intlService('DisplayNames', { of: (name) => function of(code) { return intlValue(intlAsk('call', intlOf(this, name).object, 'of', `${code}`), of); } }, false),
    Segmenter: intlService('Segmenter', {
      segment: (name) => function segment(text) {
        const input = `${text}`, list = jsonParse(intlValue(intlAsk('segments', intlOf(this, name).object, input), segment));
        for (let i = 0; i < list.length; ++i) put(list[i], 'input', input);
        return {
          containing(index = 0) { for (let i = list.length - 1; i >= 0; --i) if (list[i].index <= index) return index < input.length ? list[i] : undefined; return undefined; },
          * [symbolIterator]() { for (let i = 0; i < list.length; ++i) yield list[i]; },
        };
      },
    }, false),
  };
  for (const name in services) method(intlObject, name, services[name]);
  method(intlObject, 'getCanonicalLocales', (locales) => intlTags(locales, intlObject.getCanonicalLocales));
  put(intlObject, symbolToStringTag, 'Intl', false);
  put(globalThis, 'UIntl', intlObject, false);
})();
// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Intl.Collator and localeCompare, which FormatJS has not: three levels, as the Unicode algorithm has them (letters,
// accents, case), with the alphabets of some languages. Within a script other than Latin the order is that of code points.

const alphabets = {
  __proto__: null,
  sv: 'z<å<ä<ö', fi: 'z<å<ä<ö', da: 'z<æ<ø<å', nb: 'z<æ<ø<å', nn: 'z<æ<ø<å', no: 'z<æ<ø<å', es: 'n<ñ', cs: 'c<č h<ch r<ř s<š z<ž',
  sk: 'a<ä c<č h<ch o<ô s<š z<ž', pl: 'a<ą c<ć e<ę l<ł n<ń o<ó s<ś z<ź<ż', tr: 'c<ç g<ğ h<ı o<ö s<ş u<ü', hu: 'o<ö u<ü',
  ro: 'a<ă<â i<î s<ș t<ț',
};
const plainLetters = { __proto__: null, 'ß': 'ss', 'æ': 'ae', 'œ': 'oe', 'ø': 'o', 'ł': 'l', 'đ': 'd', 'ı': 'i', 'þ': 'th' };
const signOrder = '_-,;:!?.\'"()[]{}@*/\\&#%`^+<=>|~$';
const isMark = /^\p{M}$/u, isDigit = /^\p{Nd}$/u, isLetter = /^[\p{L}\p{N}]$/u, isSpace = /^\s$/;

/// The letters that an alphabet adds, each with its place behind a Latin letter.
function readAlphabet(language) {
  const letters = objectCreate(null), groups = stringSplit(alphabets[language] ?? '', ' ');
  for (let i = 0; i < groups.length; ++i) {
    const list = stringSplit(groups[i], '<');
    for (let k = 1; k < list.length; ++k) letters[list[k]] = stringCodePointAt(list[0], 0) + k / 16;
  }
  return letters;
}

function primaryOf(letter) {
  const code = stringCodePointAt(letter, 0);
  if (regexpExec(isSpace, letter) !== null) return code;
  const sign = stringIndexOf(signOrder, letter);
  if (sign >= 0) return 0x200000 + sign;
  if (regexpExec(isDigit, letter) !== null) return 0x600000 + code;
  return (regexpExec(isLetter, letter) !== null ? 0x800000 : 0x400000) + code;
}

/// The three levels of a text: numbers of the letters, the accents by place, the case by place.
function collationKey(text, collator) {
  const letters = [], accents = [], cases = [], composed = stringNormalize(text, 'NFC'), lower = stringToLowerCase(composed);
  for (let at = 0, upper = 0; at < lower.length;) {
    let size = stringCodePointAt(lower, at) > 0xffff ? 2 : 1, letter = stringSlice(lower, at, at + size);
    const original = stringSlice(composed, upper, upper + size);
    const pair = stringSlice(lower, at, at + 2);
    let added = collator.letters[pair];
    if (added !== undefined) size = 2; else added = collator.letters[letter];
    if (collator.numeric && regexpExec(isDigit, letter) !== null) {
      let end = at;
      while (end < lower.length && lower[end] >= '0' && lower[end] <= '9') ++end;
      if (end > at) {
        arrayPush(letters, 0x600000 + numberParseInt(stringSlice(lower, at, end), 10) / 1e6);
        arrayPush(accents, ''); arrayPush(cases, 0);
        upper += end - at;
        at = end;
        continue;
      }
    }
    const isUpper = original !== stringSlice(lower, at, at + original.length) ? 1 : 0;
    at += size;
    upper += size;
    if (added !== undefined) { arrayPush(letters, 0x800000 + added); arrayPush(accents, ''); arrayPush(cases, isUpper); continue; }
    const parts = stringNormalize(letter, 'NFD'), base = plainLetters[parts] ?? parts;
    const accent = plainLetters[parts] === undefined ? '' : '\uffff';
    for (let i = 0; i < base.length;) {
      const width = stringCodePointAt(base, i) > 0xffff ? 2 : 1, each = stringSlice(base, i, i + width);
      i += width;
      if (regexpExec(isMark, each) !== null) {
        if (accents.length > 0) accents[accents.length - 1] += each;
        continue;
      }
      const primary = primaryOf(each);
      if (collator.ignorePunctuation && primary < 0x400000) continue;
      arrayPush(letters, primary); arrayPush(accents, accent); arrayPush(cases, isUpper);
    }
  }
  return { letters, accents, cases };
}

function compareLists(left, right) {
  for (let i = 0; i < left.length && i < right.length; ++i) if (left[i] !== right[i]) return left[i] < right[i] ? -1 : 1;
  return left.length === right.length ? 0 : left.length < right.length ? -1 : 1;
}

function collate(left, right, collator) {
  if (left === right) return 0;
  const a = collationKey(left, collator), b = collationKey(right, collator);
  let order = compareLists(a.letters, b.letters);
  if (order === 0 && (collator.sensitivity === 'accent' || collator.sensitivity === 'variant')) order = compareLists(a.accents, b.accents);
  if (order === 0 && (collator.sensitivity === 'case' || collator.sensitivity === 'variant')) {
    order = compareLists(a.cases, b.cases);
    if (collator.caseFirst === 'upper') order = -order;
  }
  return order + 0;
}

function makeCollator(locales, options, boundary) {
  const tags = intlTags(locales, boundary), copy = intlOptions(options);
  const locale = tags.length > 0 ? tags[0] : 'en-US';
  return {
    locale, letters: readAlphabet(stringSplit(locale, '-')[0]), usage: copy.usage ?? 'sort', sensitivity: copy.sensitivity ?? 'variant',
    ignorePunctuation: copy.ignorePunctuation ?? false, numeric: copy.numeric ?? stringIndexOf(locale, '-u-kn') > 0, caseFirst: copy.caseFirst ?? 'false',
  };
}

const plainCollator = { letters: objectCreate(null), sensitivity: 'variant', ignorePunctuation: false, numeric: false, caseFirst: 'false' };

(function installCollator() {
  const Collator = function (locales, options) {
    const self = new.target === undefined ? objectCreate(Collator.prototype) : this;
    weakMapSet(intlInner, self, { __proto__: null, service: 'Collator', collator: makeCollator(locales, options, Collator) });
    return self;
  };
  defineProperty(Collator, 'name', { __proto__: null, value: 'Collator', configurable: true });
  defineProperty(Collator, 'length', { __proto__: null, value: 0, configurable: true });
  defineProperty(Collator, 'prototype', { __proto__: null, writable: false });
  put(Collator.prototype, symbolToStringTag, 'Intl.Collator', false);
  boundGetter(Collator, 'compare', 'Collator', (inner) => (left, right) => collate(`${left}`, `${right}`, inner.collator));
  method(Collator.prototype, 'resolvedOptions', function resolvedOptions() {
    const { locale, usage, sensitivity, ignorePunctuation, numeric, caseFirst } = intlOf(this, 'Collator', resolvedOptions).collator;
    return { locale, usage, sensitivity, ignorePunctuation, collation: 'default', numeric, caseFirst };
  });
  method(Collator, 'supportedLocalesOf', (locales) => intlTags(locales, Collator.supportedLocalesOf));
  method(intlObject, 'Collator', Collator);
  const compared = {
    localeCompare(that, locales, options) {
      if (this === undefined || this === null) throw new NativeTypeError('String.prototype.localeCompare called on null or undefined');
      return collate(`${this}`, `${that}`, locales === undefined && options === undefined ? plainCollator : makeCollator(locales, options, compared.localeCompare));
    },
  };
  method(String.prototype, 'localeCompare', compared.localeCompare);
})();
// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Locale methods. American English in UTC or local time, the usual case, is written here; for all else Intl is loaded.

const needsIntl = objectCreate(null);
function unsupported() { return needsIntl; }

function orIntl(plain, throughIntl) {
  try {
    return plain();
  } catch (error) {
    if (error !== needsIntl) throw error;
    return throughIntl();
  }
}

function intlNumberText(value, locales, options, boundary) {
  const holder = intlMake('NumberFormat', objectCreate(null), locales, options, boundary);
  return intlValue(intlAsk('call', weakMapGet(intlInner, holder).object, 'format', value), boundary);
}

function intlDateText(date, locales, options, boundary) {
  const { known } = intlPrepare('DateTimeFormat', intlTags(locales, boundary)), time = dateGetTime(date);
  if (numberIsNaN(time)) return 'Invalid Date';
  return intlValue(intlAsk('dateText', time, boundary.name, known, intlDateOptions(options)), boundary);
}

function checkLocales(locales, boundary) {
  if (locales === undefined) return;
  const list = typeof locales === 'string' ? [locales] : isObject(locales) ? arrayFrom(locales) : [];
  if (list.length === 0 && !isObject(locales)) throw atCaller(new NativeTypeError('Incorrect locale information provided'), boundary);
  for (let i = 0; i < list.length; ++i) {
    const tag = `${list[i]}`;
    if (regexpExec(/^[a-zA-Z]{2,3}([-_][a-zA-Z0-9]{1,8})*$/, tag) === null && tag !== 'C') {
      throw atCaller(new NativeRangeError(`Incorrect locale information provided: ${tag}`), boundary);
    }
    if (regexpExec(/^en([-_]US)?$/i, tag) !== null) return;
  }
  if (list.length > 0) throw unsupported(`The locale '${list[0]}'`, boundary);
}

// ---- numbers ----------------------------------------------------------------------------------------------

function groupThousands(digits) {
  let out = '';
  for (let i = 0; i < digits.length; ++i) {
    if (i > 0 && (digits.length - i) % 3 === 0) out += ',';
    out += digits[i];
  }
  return out;
}

function digitOption(options, name, low, high, fallback, boundary) {
  const value = options[name];
  if (value === undefined) return fallback;
  const number = +value;
  if (!(number >= low && number <= high)) throw atCaller(new NativeRangeError(`${name} value is out of range.`), boundary);
  return mathFloor(number);
}

/// Rounds half away from zero on the decimal digits, as Intl does, to at most `most` places.
function roundDigits(text, least, most) {
  let dot = stringIndexOf(text, '.');
  let whole = dot < 0 ? text : stringSlice(text, 0, dot), fraction = dot < 0 ? '' : stringSlice(text, dot + 1);
  if (fraction.length > most) {
    const up = fraction[most] >= '5';
    fraction = stringSlice(fraction, 0, most);
    if (up) {
      const digits = `${NativeBigInt(whole + fraction) + 1n}`;
      const padded = stringPadStart(digits, whole.length + fraction.length, '0');
      whole = stringSlice(padded, 0, padded.length - most);
      fraction = stringSlice(padded, padded.length - most);
    }
  }
  while (fraction.length > least && fraction[fraction.length - 1] === '0') fraction = stringSlice(fraction, 0, -1);
  return [whole, stringPadEnd(fraction, least, '0')];
}

/// Decimal digits of a finite positive number, without an exponent.
function plainDigits(value) {
  const text = `${value}`, at = stringIndexOf(text, 'e');
  if (at < 0) return text;
  const exponent = +stringSlice(text, at + 1), mantissa = stringSlice(text, 0, at), dot = stringIndexOf(mantissa, '.');
  const whole = dot < 0 ? mantissa : stringSlice(mantissa, 0, dot), fraction = dot < 0 ? '' : stringSlice(mantissa, dot + 1);
  if (exponent > 0) return whole + stringPadEnd(fraction, exponent, '0');
  return `0.${stringRepeat('0', -exponent - 1)}${whole}${fraction}`;
}

const currencySymbols = { __proto__: null, USD: '$', EUR: '€', GBP: '£', JPY: '¥', INR: '₹', CNY: 'CN¥', KRW: '₩', BRL: 'R$', CAD: 'CA$', AUD: 'A$', MXN: 'MX$', NZD: 'NZ$', ILS: '₪', VND: '₫' };
const wholeCurrencies = { __proto__: null, JPY: true, KRW: true, VND: true };
const supportedNumberOptions = { __proto__: null, style: 1, currency: 1, currencyDisplay: 1, minimumFractionDigits: 1, maximumFractionDigits: 1, useGrouping: 1, minimumIntegerDigits: 1, maximumSignificantDigits: 1, minimumSignificantDigits: 1, localeMatcher: 1 };

function formatLocaleNumber(value, locales, options, boundary) {
  checkLocales(locales, boundary);
  options = options === undefined ? {} : NativeObject(options);
  const names = objectKeys(options);
  for (let i = 0; i < names.length; ++i) {
    if (supportedNumberOptions[names[i]] === undefined && options[names[i]] !== undefined &&
        !(names[i] === 'notation' && options.notation === 'standard') && !(names[i] === 'numberingSystem' && options.numberingSystem === 'latn')) {
      throw unsupported(`The option ${names[i]}`, boundary);
    }
  }
  const style = options.style ?? 'decimal';
  if (style !== 'decimal' && style !== 'percent' && style !== 'currency') throw unsupported(`The style '${style}'`, boundary);
  const currency = style === 'currency' ? stringToUpperCase(`${options.currency}`) : '';
  if (style === 'currency' && options.currency === undefined) throw atCaller(new NativeTypeError('Currency code is required with currency style.'), boundary);
  const usual = style === 'currency' ? (wholeCurrencies[currency] ? 0 : 2) : 0;
  const least = digitOption(options, 'minimumFractionDigits', 0, 100, undefined, boundary);
  const most = digitOption(options, 'maximumFractionDigits', 0, 100, undefined, boundary);
  const lowest = least ?? mathMin(usual, most ?? usual);
  const highest = most ?? mathMax(lowest, style === 'currency' ? usual : style === 'percent' ? 0 : 3);
  if (lowest > highest) throw atCaller(new NativeRangeError('maximumFractionDigits value is out of range.'), boundary);
  const mark = style === 'currency' ? (currencySymbols[currency] ?? `${currency}\u00a0`) : '', tail = style === 'percent' ? '%' : '';
  if (typeof value === 'number' && !numberIsFinite(value)) {
    return numberIsNaN(value) ? `${mark}NaN${tail}` : `${value < 0 ? '-' : ''}${mark}∞${tail}`;
  }
  const negative = value < 0 || objectIs(value, -0);
  let digits = typeof value === 'bigint' ? `${negative ? -value : value}` : plainDigits(mathAbs(value));
  if (style === 'percent') {
    const dot = stringIndexOf(digits, '.'), fraction = dot < 0 ? '' : stringSlice(digits, dot + 1), whole = dot < 0 ? digits : stringSlice(digits, 0, dot);
    const moved = stringPadEnd(fraction, 2, '0');
    digits = `${NativeBigInt(whole + stringSlice(moved, 0, 2))}${moved.length > 2 ? `.${stringSlice(moved, 2)}` : ''}`;
  }
  const significant = digitOption(options, 'maximumSignificantDigits', 1, 21, undefined, boundary);
  let parts;
  if (significant !== undefined && typeof value === 'number') parts = stringSplit(plainDigits(+numberToPrecision(mathAbs(+digits), significant)), '.');
  else parts = roundDigits(digits, lowest, highest);
  let whole = stringPadStart(parts[0], digitOption(options, 'minimumIntegerDigits', 1, 21, 1, boundary), '0');
  if (options.useGrouping !== false && options.useGrouping !== 'false') whole = groupThousands(whole);
  return `${negative ? '-' : ''}${mark}${whole}${parts[1] ? `.${parts[1]}` : ''}${tail}`;
}

// ---- dates ------------------------------------------------------------------------------------------------

const weekdayNames = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const monthNames = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
const dateGetters = objectCreate(null);
for (const part of ['FullYear', 'Month', 'Date', 'Day', 'Hours', 'Minutes', 'Seconds']) {
  dateGetters[`get${part}`] = uncurry(Date.prototype[`get${part}`]);
  dateGetters[`getUTC${part}`] = uncurry(Date.prototype[`getUTC${part}`]);
}

function formatLocaleDate(date, locales, options, defaults, boundary) {
  checkLocales(locales, boundary);
  options = options === undefined || options === null ? {} : NativeObject(options);
  let utc = false;
  if (options.timeZone !== undefined) {
    const zone = stringToUpperCase(`${options.timeZone}`);
    if (zone !== 'UTC' && zone !== 'GMT' && zone !== 'ETC/UTC' && zone !== 'ETC/GMT') throw unsupported(`The time zone '${options.timeZone}'`, boundary);
    utc = true;
  }
  const known = ['weekday', 'year', 'month', 'day', 'hour', 'minute', 'second', 'hour12', 'hourCycle', 'timeZone', 'dateStyle', 'timeStyle', 'localeMatcher', 'formatMatcher'];
  const names = objectKeys(options);
  for (let i = 0; i < names.length; ++i) {
    if (!arrayIncludes(known, names[i]) && options[names[i]] !== undefined) throw unsupported(`The option ${names[i]}`, boundary);
  }
  if (numberIsNaN(dateGetTime(date))) return 'Invalid Date';
  const part = (name) => dateGetters[`get${utc ? 'UTC' : ''}${name}`](date);
  let { weekday, year, month, day, hour, minute, second } = options;
  let joiner = ', ';
  const { dateStyle, timeStyle } = options;
  if (dateStyle !== undefined || timeStyle !== undefined) {
    if (dateStyle === 'full') { weekday = 'long'; year = 'numeric'; month = 'long'; day = 'numeric'; joiner = ' at '; }
    else if (dateStyle === 'long') { year = 'numeric'; month = 'long'; day = 'numeric'; joiner = ' at '; }
    else if (dateStyle === 'medium') { year = 'numeric'; month = 'short'; day = 'numeric'; }
    else if (dateStyle === 'short') { year = '2-digit'; month = 'numeric'; day = 'numeric'; }
    if (timeStyle !== undefined) {
      if (timeStyle === 'full' || timeStyle === 'long') throw unsupported(`The time style '${timeStyle}'`, boundary);
      hour = 'numeric';
      minute = '2-digit';
      if (timeStyle === 'medium') second = '2-digit';
    }
  } else {
    const hasDate = weekday ?? year ?? month ?? day, hasTime = hour ?? minute ?? second;
    if ((defaults === 'date' && hasDate === undefined) || (defaults === 'all' && hasDate === undefined && hasTime === undefined)) {
      year = month = day = 'numeric';
    }
    if ((defaults === 'time' && hasTime === undefined) || (defaults === 'all' && hasDate === undefined && hasTime === undefined)) {
      hour = 'numeric';
      minute = second = '2-digit';
    }
  }
  const two = (number) => stringPadStart(`${number}`, 2, '0');
  const yearText = year === undefined ? '' : year === '2-digit' ? two(part('FullYear') % 100) : `${part('FullYear')}`;
  const dayText = day === undefined ? '' : day === '2-digit' ? two(part('Date')) : `${part('Date')}`;
  const weekdayText = weekday === undefined ? '' : weekday === 'long' ? weekdayNames[part('Day')] : weekday === 'narrow' ? weekdayNames[part('Day')][0] : stringSlice(weekdayNames[part('Day')], 0, 3);
  let dateText;
  if (month === 'long' || month === 'short' || month === 'narrow') {
    const full = monthNames[part('Month')], name = month === 'long' ? full : month === 'short' ? stringSlice(full, 0, 3) : full[0];
    dateText = dayText === '' ? name : `${name} ${dayText}`;
    if (yearText !== '') dateText += dayText === '' ? ` ${yearText}` : `, ${yearText}`;
  } else {
    const pieces = [];
    if (month !== undefined) arrayPush(pieces, month === '2-digit' ? two(part('Month') + 1) : `${part('Month') + 1}`);
    if (dayText !== '') arrayPush(pieces, dayText);
    if (yearText !== '') arrayPush(pieces, yearText);
    dateText = arrayJoin(pieces, '/');
  }
  if (weekdayText !== '') dateText = dateText === '' ? weekdayText : `${weekdayText}, ${dateText}`;
  let timeText = '';
  if (hour !== undefined || minute !== undefined || second !== undefined) {
    const twelve = options.hour12 ?? (options.hourCycle === undefined || options.hourCycle === 'h12' || options.hourCycle === 'h11');
    const pieces = [], hours = part('Hours');
    if (hour !== undefined) {
      const shown = twelve ? hours % 12 || 12 : hours;
      arrayPush(pieces, hour === '2-digit' || !twelve ? two(shown) : `${shown}`);
    }
    if (minute !== undefined) arrayPush(pieces, hour === undefined && second === undefined ? `${part('Minutes')}` : two(part('Minutes')));
    if (second !== undefined) arrayPush(pieces, minute === undefined ? `${part('Seconds')}` : two(part('Seconds')));
    timeText = arrayJoin(pieces, ':');
    if (hour !== undefined && twelve) timeText += hours < 12 ? ' AM' : ' PM';
  }
  if (dateText === '') return timeText;
  return timeText === '' ? dateText : `${dateText}${joiner}${timeText}`;
}

method(Number.prototype, 'toLocaleString', function toLocaleString(locales, options) {
  const value = numberValueOf(this);
  return orIntl(() => formatLocaleNumber(value, locales, options, toLocaleString), () => intlNumberText(value, locales, options, toLocaleString));
});
method(BigInt.prototype, 'toLocaleString', function toLocaleString(locales, options) {
  const value = bigintValueOf(this);
  return orIntl(() => formatLocaleNumber(value, locales, options, toLocaleString), () => intlNumberText(value, locales, options, toLocaleString));
});
method(Date.prototype, 'toLocaleString', function toLocaleString(locales, options) {
  return orIntl(() => formatLocaleDate(this, locales, options, 'all', toLocaleString), () => intlDateText(this, locales, options, toLocaleString));
});
method(Date.prototype, 'toLocaleDateString', function toLocaleDateString(locales, options) {
  return orIntl(() => formatLocaleDate(this, locales, options, 'date', toLocaleDateString), () => intlDateText(this, locales, options, toLocaleDateString));
});
method(Date.prototype, 'toLocaleTimeString', function toLocaleTimeString(locales, options) {
  return orIntl(() => formatLocaleDate(this, locales, options, 'time', toLocaleTimeString), () => intlDateText(this, locales, options, toLocaleTimeString));
});

/// Turkish has two letters i, and Greek capitals no accents.
function localeCase(text, tags, isUpper) {
  const language = tags.length === 0 ? '' : stringSplit(tags[0], '-')[0];
  if (language === 'tr' || language === 'az') {
    return isUpper ? stringToUpperCase(stringReplaceAll(text, 'i', 'İ')) : stringToLowerCase(stringReplaceAll(stringReplaceAll(text, 'İ', 'i'), 'I', 'ı'));
  }
  if (language === 'el' && isUpper) {
    let out = '';
    const parts = stringNormalize(text, 'NFD');
    for (let i = 0; i < parts.length; ++i) if (parts[i] !== '\u0301' && parts[i] !== '\u0300' && parts[i] !== '\u0342') out += parts[i];
    return stringToUpperCase(stringNormalize(out, 'NFC'));
  }
  return isUpper ? stringToUpperCase(text) : stringToLowerCase(text);
}

for (const isUpper of [true, false]) {
  const name = isUpper ? 'toLocaleUpperCase' : 'toLocaleLowerCase';
  const changed = {
    [name](locales) {
      if (this === undefined || this === null) throw atCaller(new NativeTypeError(`String.prototype.${name} called on null or undefined`), changed[name]);
      return localeCase(`${this}`, intlTags(locales, changed[name]), isUpper);
    },
  };
  method(String.prototype, name, changed[name]);
}
const I=globalThis.UIntl;
const T=[()=>new I.NumberFormat("de-DE",{style:"currency",currency:"EUR"}).format(1234.5),()=>new I.DateTimeFormat("ja-JP",{timeZone:"Asia/Tokyo",dateStyle:'medium',timeStyle:'medium'}).format(new Date(0)),()=>new I.NumberFormat("de-DE").resolvedOptions().locale,()=>new I.PluralRules('en',{type:'ordinal'}).select(2),()=>new I.RelativeTimeFormat('de').format(-1,'day'),()=>new I.ListFormat('en').format(['a','b','c']),()=>new I.DisplayNames('de',{type:'region'}).of('US'),()=>[...new I.Segmenter('en',{granularity:'word'}).segment('Hi you')].length,()=>I.getCanonicalLocales('DE-de').join(),()=>[1.5,2].map(I.NumberFormat('fr').format).join(' '),()=>{try{new I.NumberFormat('en',{style:'currency'})}catch(e){return e.name+e.message+(e instanceof TypeError)}},()=>JSON.stringify(new I.NumberFormat('de').formatToParts(1234.5)),()=>new I.DateTimeFormat('en-US').format(0),()=>I.NumberFormat.supportedLocalesOf(['de-DE','xx']).join(),()=>new I.DateTimeFormat('de',{timeZone:'America/New_York',dateStyle:'full',timeStyle:'long'}).format(0),()=>new Date(0).toLocaleString('ja-JP',{timeZone:'Asia/Tokyo'}),()=>['ä','z','a','Z','å'].sort(new I.Collator('sv').compare).join(),()=>['ä','z','a','b'].sort(new I.Collator('de').compare).join(),()=>['a10','a2'].sort(new I.Collator('en',{numeric:true}).compare).join(),()=>'a'.localeCompare('B')+' '+'a'.localeCompare('A')+' '+'résumé'.localeCompare('resume'),()=>'istanbul'.toLocaleUpperCase('tr'),()=>(1234.5).toLocaleString('de-DE'),()=>(12n).toLocaleString('de-DE'),()=>new Date(Date.UTC(2024,2,31,12)).toLocaleDateString('de-DE',{timeZone:'Europe/Berlin'}),()=>(5).toLocaleString(),()=>new Date(0).toLocaleTimeString('fr-FR'),()=>new Date(0).toLocaleDateString('pt-PT'),()=>(1e6).toLocaleString('zh-TW',{notation:'compact'})];
for(const f of T){const t=performance.now();let r;try{r=f()}catch(e){r=e.stack}console.log(r,(performance.now()-t).toFixed(0))}
