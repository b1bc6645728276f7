// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Intl.Collator and localeCompare, which FormatJS has not: three levels, as the Unicode algorithm has them (letters,
// accents, case), with the alphabets of some languages. Within a script other than Latin the order is that of code points.

const alphabets = {
  __proto__: null,
  sv: 'z<å<ä<æ<ö<ø', fi: 'z<å<ä<æ<ö<ø', da: 'z<æ<ä<ø<ö<å', nb: 'z<æ<ä<ø<ö<å', nn: 'z<æ<ä<ø<ö<å', no: 'z<æ<ä<ø<ö<å', es: 'n<ñ', cs: 'c<č h<ch r<ř s<š z<ž',
  sk: 'a<ä c<č h<ch o<ô s<š z<ž', pl: 'a<ą c<ć e<ę l<ł n<ń o<ó s<ś z<ź<ż', tr: 'c<ç g<ğ h<ı o<ö s<ş u<ü', hu: 'o<ö u<ü',
  ro: 'a<ă<â i<î s<ș t<ț',
};
const plainLetters = { __proto__: null, 'ß': 'ss', 'æ': 'ae', 'œ': 'oe', 'ø': 'o', 'ł': 'l', 'đ': 'd', 'ı': 'i', 'þ': 'th' };
const signOrder = '_-,;:!?.\'"()[]{}@*/\\&#%`^+<=>|~$';
// Accents in the order of the Unicode table; others follow.
const accentOrder = '\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307';
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
        const place = stringIndexOf(accentOrder, each);
        if (accents.length > 0) accents[accents.length - 1] += place < 0 ? each : stringFromCharCode(0x100 + place);
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
    ignorePunctuation: copy.ignorePunctuation ?? false, numeric: copy.numeric ?? stringIndexOf(locale, '-u-kn') > 0, caseFirst: copy.caseFirst ?? (stringSplit(locale, '-')[0] === 'da' ? 'upper' : 'false'),
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
    localeCompare(that, locales = undefined, options = undefined) {
      if (this === undefined || this === null) throw new NativeTypeError('String.prototype.localeCompare called on null or undefined');
      return collate(`${this}`, `${that}`, locales === undefined && options === undefined ? plainCollator : makeCollator(locales, options, compared.localeCompare));
    },
  };
  method(String.prototype, 'localeCompare', compared.localeCompare);
})();
