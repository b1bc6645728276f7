// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// node:path, the POSIX half.

function checkString(value, name, boundary) {
  if (typeof value !== 'string') {
    throw typeError('ERR_INVALID_ARG_TYPE', `The "${name}" argument must be of type string. Received ${received(value)}`, boundary);
  }
}

/// Resolves . and .. and doubled slashes; `absolute` paths never climb above the root.
function normalizeParts(text, absolute) {
  const parts = stringSplit(text, '/'), out = [];
  for (let i = 0; i < parts.length; ++i) {
    const part = parts[i];
    if (part === '' || part === '.') continue;
    if (part === '..') {
      if (out.length > 0 && out[out.length - 1] !== '..') arrayPop(out);
      else if (!absolute) arrayPush(out, '..');
    } else {
      arrayPush(out, part);
    }
  }
  return arrayJoin(out, '/');
}

function lastPartStart(text, end) {
  return stringLastIndexOf(text, '/', end - 1) + 1;
}

function trimSlashes(text) {
  let end = text.length;
  while (end > 1 && text[end - 1] === '/') --end;
  return stringSlice(text, 0, end);
}

const path = {
  sep: '/',
  delimiter: ':',
  normalize(text) {
    checkString(text, 'path', path.normalize);
    if (text === '') return '.';
    const absolute = text[0] === '/', body = normalizeParts(text, absolute), tail = text[text.length - 1] === '/';
    if (body === '') return absolute ? '/' : tail ? './' : '.';
    return (absolute ? '/' : '') + body + (tail ? '/' : '');
  },
  join(...parts) {
    let text = '';
    for (let i = 0; i < parts.length; ++i) {
      checkString(parts[i], 'path', path.join);
      if (parts[i] !== '') text += text === '' ? parts[i] : `/${parts[i]}`;
    }
    return text === '' ? '.' : path.normalize(text);
  },
  resolve(...parts) {
    let text = '';
    for (let i = parts.length - 1; i >= -1 && text[0] !== '/'; --i) {
      const part = i >= 0 ? parts[i] : host.cwd();
      checkString(part, `paths[${i}]`, path.resolve);
      if (part !== '') text = text === '' ? part : `${part}/${text}`;
    }
    return `/${normalizeParts(text, true)}`;
  },
  isAbsolute(text) { checkString(text, 'path', path.isAbsolute); return text[0] === '/'; },
  dirname(text) {
    checkString(text, 'path', path.dirname);
    if (text === '') return '.';
    const body = trimSlashes(text), start = lastPartStart(body, body.length);
    if (body === '/') return '/';
    return start === 0 ? '.' : trimSlashes(stringSlice(body, 0, start)) || '/';
  },
  basename(text, suffix) {
    checkString(text, 'path', path.basename);
    const body = trimSlashes(text);
    if (body === '/') return '';
    const base = stringSlice(body, lastPartStart(body, body.length));
    if (suffix === undefined || suffix === '' || !stringEndsWith(base, suffix)) return base;
    return base !== suffix ? stringSlice(base, 0, -suffix.length) : text === suffix ? '' : base;
  },
  extname(text) {
    checkString(text, 'path', path.extname);
    const base = path.basename(text), dot = stringLastIndexOf(base, '.');
    return dot <= 0 || base === '..' ? '' : stringSlice(base, dot);
  },
  relative(from, to) {
    checkString(from, 'from', path.relative);
    checkString(to, 'to', path.relative);
    const a = stringSplit(path.resolve(from), '/'), b = stringSplit(path.resolve(to), '/');
    if (a[1] === '') arrayPop(a);
    if (b[1] === '') arrayPop(b);
    let same = 0;
    while (same < a.length && same < b.length && a[same] === b[same]) ++same;
    const out = [];
    for (let i = same; i < a.length; ++i) arrayPush(out, '..');
    for (let i = same; i < b.length; ++i) arrayPush(out, b[i]);
    return arrayJoin(out, '/');
  },
  parse(text) {
    checkString(text, 'path', path.parse);
    const root = text[0] === '/' ? '/' : '', base = path.basename(text), ext = path.extname(base);
    const dir = stringIncludes(trimSlashes(text), '/') ? path.dirname(text) : '';
    return { root, dir, base, ext, name: ext === '' ? base : stringSlice(base, 0, -ext.length) };
  },
  format(parts) {
    const dir = parts.dir ?? parts.root ?? '';
    const ext = parts.ext === undefined || parts.ext === '' || parts.ext[0] === '.' ? parts.ext ?? '' : `.${parts.ext}`;
    const base = parts.base ?? `${parts.name ?? ''}${ext}`;
    if (dir === '') return base;
    return dir === parts.root ? dir + base : `${dir}/${base}`;
  },
  toNamespacedPath(text) { return text; },
};
put(path, 'posix', path);
