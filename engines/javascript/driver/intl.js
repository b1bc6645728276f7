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
  const isThere = typeof text === 'string';
  if (isThere) intlValue(intlAsk('load', text), intlLoad);
  intlLoaded[file] = isThere;  // only now: a run that is stopped while it loads leaves it to the next
  return isThere;
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

function intlDateOptions(options, tag) {
  const copy = intlOptions(options);
  copy.timeZone ??= intlZone();
  if (stringIndexOf(tag, '-ca-') < 0) copy.calendar ??= 'gregory';  // the one there is
  if (stringToUpperCase(copy.timeZone) !== 'UTC') intlLoad('intl-datetimeformat/add-all-tz.js');
  return copy;
}

/// Languages that write 1234 and 12.345.
const fewGroups = { __proto__: null, es: true, it: true, 'pt-PT': true, pl: true, hu: true, bg: true };

/// Ranges are known of components only: those that a style stands for.
function intlStyleParts(copy) {
  const { dateStyle, timeStyle } = copy;
  if (dateStyle === undefined && timeStyle === undefined) return undefined;
  const parts = { __proto__: null, timeZone: copy.timeZone, calendar: copy.calendar, hour12: copy.hour12, hourCycle: copy.hourCycle };
  if (dateStyle !== undefined) {
    parts.year = dateStyle === 'short' ? '2-digit' : 'numeric';
    parts.month = dateStyle === 'short' ? 'numeric' : dateStyle === 'medium' ? 'short' : 'long';
    parts.day = 'numeric';
    if (dateStyle === 'full') parts.weekday = 'long';
  }
  if (timeStyle !== undefined) {
    parts.hour = 'numeric';
    parts.minute = '2-digit';
    if (timeStyle !== 'short') parts.second = '2-digit';
  }
  return parts;
}

function intlMake(service, self, locales, options, boundary) {
  const tags = intlTags(locales, boundary), { found, known } = intlPrepare(service, tags);
  const isDate = service === 'DateTimeFormat', copy = isDate ? intlDateOptions(options, known) : intlOptions(options);
  const isAuto = service === 'NumberFormat' && (copy.useGrouping === undefined || copy.useGrouping === 'auto') && copy.notation !== 'compact';
  if (isAuto && fewGroups[stringSplit(known, '-u-')[0]]) copy.useGrouping = 'min2';
  const object = intlValue(intlAsk('make', service, service === 'Locale' ? (tags[0] ?? '') : known, copy), boundary);
  weakMapSet(intlInner, self, { __proto__: null, service, object, tag: found === '' ? 'en-US' : found, isAuto, known, ranges: isDate ? intlStyleParts(copy) : undefined });
  return self;
}

function intlOf(self, name, boundary) {
  const inner = isObject(self) ? weakMapGet(intlInner, self) : undefined;
  if (inner === undefined || inner.service !== name) throw atCaller(new NativeTypeError(`the receiver is not an Intl.${name}`), boundary);
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
    if (inner.isAuto) put(options, 'useGrouping', 'auto');
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
  const inner = intlOf(this, name);
  let { object } = inner;
  if (key !== 'formatToParts' && inner.ranges !== undefined) object = inner.ranged ??= intlValue(intlAsk('make', name, inner.known, inner.ranges), undefined);
  const text = intlValue(intlAsk('dates', object, key, asTime(from), to === undefined ? undefined : +to), undefined);
  return isList ? jsonParse(text) : text;
};
function listText(list) {
  const items = [];
  for (const item of { __proto__: null, [symbolIterator]: () => list[symbolIterator]() }) {
    if (typeof item !== 'string') throw new NativeTypeError('Iterable yielded a value that is not a string');
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
  const Locale = services.Locale = intlService('Locale', {
    toString: (name) => function toString() { return intlValue(intlAsk('text', intlOf(this, name, toString).object, 'toString'), toString); },
    maximize: (name) => function maximize() { return new Locale(intlValue(intlAsk('text', intlOf(this, name, maximize).object, 'maximize'), maximize)); },
    minimize: (name) => function minimize() { return new Locale(intlValue(intlAsk('text', intlOf(this, name, minimize).object, 'minimize'), minimize)); },
  }, false);
  delete Locale.prototype.resolvedOptions;
  delete Locale.supportedLocalesOf;
  for (const key of ['baseName', 'language', 'script', 'region', 'calendar', 'collation', 'caseFirst', 'hourCycle', 'numberingSystem', 'numeric']) {
    const getter = { get [key]() { return intlValue(intlAsk('get', intlOf(this, 'Locale').object, key), undefined); } };
    defineProperty(Locale.prototype, key, { __proto__: null, configurable: true, enumerable: false, get: getOwnPropertyDescriptor(getter, key).get });
  }
  for (const name in services) method(intlObject, name, services[name]);
  method(intlObject, 'getCanonicalLocales', (locales) => intlTags(locales, intlObject.getCanonicalLocales));
  put(intlObject, symbolToStringTag, 'Intl', false);
  put(globalThis, 'Intl', intlObject, false);
})();
