// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// FormatJS's Intl, in the driver's own realm. Its text is given by the driver when a program first asks for it. What
// is thrown here is told as { error, message } and thrown anew, from the user's realm.

// What it adds to.
globalThis.Intl = {};

// Where a run is stopped in here, the frames of the program that called lie far below those of the libraries.
Error.stackTraceLimit = 200;

const answer = (work) => {
  try { return { value: work() }; } catch (error) { return { error: `${error?.name}`, message: `${error?.message ?? error}` }; }
};

globalThis.intl = {
  /// Its own check, whether a locale is missing, compares with every locale there is; and tags given here are the data's own, so
  /// that no best fit need be looked for among all that were loaded.
  load: (text) => answer(() => void (0, eval)(text.replaceAll('match([locale], supportedLocales, "en")', '"en"').replaceAll('r = BestFitMatcher(', 'r = LookupMatcher('))),
  setDefaultTimeZone: (zone) => answer(() => Intl.DateTimeFormat.__setDefaultTimeZone(zone)),
  make: (service, tags, options) => answer(() => new Intl[service](tags === '' ? undefined : service === 'Locale' ? tags : tags.split(' '), options)),
  call: (object, method, ...values) => answer(() => object[method](...values)),
  text: (object, method) => answer(() => `${object[method]()}`),
  /// The result as JSON: parts, options.
  list: (object, method, ...values) => answer(() => JSON.stringify(object[method](...values))),
  get: (object, name) => answer(() => object[name]),
  join: (object, method, text) => answer(() => object[method](JSON.parse(text))),
  joinToParts: (object, text) => answer(() => JSON.stringify(object.formatToParts(JSON.parse(text)))),
  dates: (object, method, from, to) => answer(() => { const text = object[method](new Date(from), to === undefined ? undefined : new Date(to)); return typeof text === 'string' ? text : JSON.stringify(text); }),
  /// FormatJS takes signs and blanks for words.
  segments: (object, text) => answer(() => {
    const isWords = object.resolvedOptions().granularity === 'word';
    return JSON.stringify([...object.segment(text)].map(({ segment, index }) => ({ segment, index, isWordLike: isWords ? /[\p{L}\p{N}]/u.test(segment) : undefined })));
  }),
};
