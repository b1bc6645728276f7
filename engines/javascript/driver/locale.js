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

const dateFields = ['weekday', 'year', 'month', 'day'], timeFields = ['dayPeriod', 'hour', 'minute', 'second', 'fractionalSecondDigits'];

function intlGlue(locales, options, boundary) {
  const style = { __proto__: null, dateStyle: 'medium', timeStyle: 'short', timeZone: options.timeZone };
  const holder = intlMake('DateTimeFormat', objectCreate(null), locales, style, boundary);
  const parts = jsonParse(intlValue(intlAsk('dates', weakMapGet(intlInner, holder).object, 'formatToParts', 0), boundary));
  for (let i = 1; i < parts.length; ++i) {
    if (parts[i].type === 'hour' || parts[i].type === 'dayPeriod') return parts[i - 1].value;
  }
  return ', ';
}

function intlDateText(date, locales, options, defaults, boundary) {
  const copy = intlOptions(options), time = dateGetTime(date);
  const has = (names) => { for (let i = 0; i < names.length; ++i) if (copy[names[i]] !== undefined) return true; return false; };
  if (copy.dateStyle === undefined && copy.timeStyle === undefined) {
    const hasDate = has(dateFields), hasTime = has(timeFields);
    if (defaults === 'all' && !hasDate && !hasTime) {
      // FormatJS would take a longer form of the date; what stands between the two is that of the language.
      const day = intlDateText(date, locales, copy, 'date', boundary);
      if (numberIsNaN(time)) return day;
      return `${day}${intlGlue(locales, copy, boundary)}${intlDateText(date, locales, copy, 'time', boundary)}`;
    }
    if (defaults === 'date' && !hasDate) copy.year = copy.month = copy.day = 'numeric';
    if (defaults === 'time' && !hasTime) copy.hour = copy.minute = copy.second = 'numeric';
  }
  const holder = intlMake('DateTimeFormat', objectCreate(null), locales, copy, boundary);
  if (numberIsNaN(time)) return 'Invalid Date';
  return intlValue(intlAsk('dates', weakMapGet(intlInner, holder).object, 'format', time), boundary);
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

/// Methods are no constructors, and these need no arguments.
function localeMethod(prototype, name, textOf) {
  const holder = {
    [name](locales = undefined, options = undefined) { return textOf(this, locales, options, holder[name]); },
  };
  method(prototype, name, holder[name]);
}

const localeNumber = (valueOf) => (self, locales, options, caller) => {
  const value = valueOf(self);
  return orIntl(() => formatLocaleNumber(value, locales, options, caller), () => intlNumberText(value, locales, options, caller));
};
localeMethod(Number.prototype, 'toLocaleString', localeNumber(numberValueOf));
localeMethod(BigInt.prototype, 'toLocaleString', localeNumber(bigintValueOf));

const localeDate = (parts) => (self, locales, options, caller) =>
  orIntl(() => formatLocaleDate(self, locales, options, parts, caller), () => intlDateText(self, locales, options, parts, caller));
localeMethod(Date.prototype, 'toLocaleString', localeDate('all'));
localeMethod(Date.prototype, 'toLocaleDateString', localeDate('date'));
localeMethod(Date.prototype, 'toLocaleTimeString', localeDate('time'));

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
    [name](locales = undefined) {
      if (this === undefined || this === null) throw atCaller(new NativeTypeError(`String.prototype.${name} called on null or undefined`), changed[name]);
      return localeCase(`${this}`, intlTags(locales, changed[name]), isUpper);
    },
  };
  method(String.prototype, name, changed[name]);
}

/// As the standard of Intl has it: the elements are given locales and options.
const typedArrayKeys = typedArrayPrototype.keys;
function checkedLength(array) {
  reflectApply(typedArrayKeys, array, []);  // refuses what is no typed array or has lost its buffer
  return typedArrayLength(array);
}
for (const [prototype, lengthOf] of [[Array.prototype, (list) => list.length], [typedArrayPrototype, checkedLength]]) {
  const joined = {
    toLocaleString(locales = undefined, options = undefined) {
      if (this === undefined || this === null) throw atCaller(new NativeTypeError('cannot convert to object'), joined.toLocaleString);
      const list = NativeObject(this), length = lengthOf(list);
      let out = '';
      for (let i = 0; i < length; ++i) {
        const item = list[i];
        out += `${i > 0 ? ',' : ''}${item === undefined || item === null ? '' : item.toLocaleString(locales, options)}`;
      }
      return out;
    },
  };
  method(prototype, 'toLocaleString', joined.toLocaleString);
}
