// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// fs: the synchronous API on the sandbox's files, the same as promises, and callbacks on top of those.
// Functions that write return null.

// By the number of WASI preview 1: name, Linux number, words.
const systemErrors = objectAssign(objectCreate(null), {
  1: ['E2BIG', 7, 'argument list too long'], 2: ['EACCES', 13, 'permission denied'], 6: ['EAGAIN', 11, 'resource temporarily unavailable'],
  8: ['EBADF', 9, 'bad file descriptor'], 10: ['EBUSY', 16, 'resource busy or locked'], 19: ['EDQUOT', 122, 'disk quota exceeded'],
  20: ['EEXIST', 17, 'file already exists'], 22: ['EFBIG', 27, 'file too large'], 27: ['EINTR', 4, 'interrupted system call'],
  28: ['EINVAL', 22, 'invalid argument'], 29: ['EIO', 5, 'i/o error'], 31: ['EISDIR', 21, 'illegal operation on a directory'],
  32: ['ELOOP', 40, 'too many symbolic links encountered'], 33: ['EMFILE', 24, 'too many open files'], 34: ['EMLINK', 31, 'too many links'],
  37: ['ENAMETOOLONG', 36, 'name too long'], 41: ['ENFILE', 23, 'file table overflow'], 44: ['ENOENT', 2, 'no such file or directory'],
  48: ['ENOMEM', 12, 'not enough memory'], 51: ['ENOSPC', 28, 'no space left on device'], 52: ['ENOSYS', 38, 'function not implemented'],
  54: ['ENOTDIR', 20, 'not a directory'], 55: ['ENOTEMPTY', 39, 'directory not empty'], 58: ['ENOTSUP', 95, 'operation not supported on socket'],
  63: ['EPERM', 1, 'operation not permitted'], 64: ['EPIPE', 32, 'broken pipe'], 69: ['EROFS', 30, 'read-only file system'],
  70: ['ESPIPE', 29, 'invalid seek'], 71: ['ESRCH', 3, 'no such process'], 75: ['EXDEV', 18, 'cross-device link not permitted'],
  76: ['ENOTCAPABLE', 13, 'permission denied'],
});
systemErrors[76] = ['EACCES', 13, 'permission denied'];  // WASI's own: a path that leaves the sandbox

function systemError(status, syscall, file, boundary, destination) {
  const known = systemErrors[-status] ?? ['EIO', 5, `i/o error (${-status})`];
  let message = `${known[0]}: ${known[2]}, ${syscall}`;
  if (file !== undefined) message += ` '${file}'`;
  if (destination !== undefined) message += ` -> '${destination}'`;
  const error = new NativeError(message);
  put(error, 'errno', -known[1]);
  put(error, 'code', known[0]);
  put(error, 'syscall', syscall);
  if (file !== undefined) put(error, 'path', file);
  if (destination !== undefined) put(error, 'dest', destination);
  return atCaller(error, boundary);
}

function checkPath(value, name, boundary) {
  const text = pathText(value);
  if (typeof text !== 'string') {
    throw typeError('ERR_INVALID_ARG_TYPE', `The "${name}" argument must be of type string or an instance of Buffer or URL. Received ${received(value)}`, boundary);
  }
  if (stringIncludes(text, '\0')) {
    throw typeError('ERR_INVALID_ARG_VALUE', `The argument '${name}' must be a string, Uint8Array, or URL without null bytes. Received ${quote(text)}`, boundary);
  }
  return text;
}

function pathText(value) {
  if (typeof value === 'string' || !isObject(value)) return value;
  if (value instanceof URL) return value.protocol === 'file:' ? percentDecode(value.pathname) : undefined;
  const bytes = bytesOf(value);
  return bytes === null ? undefined : utf8Decode(bytes);
}

function encodingOf(options, boundary) {
  const name = typeof options === 'string' ? options : options?.encoding;
  if (name === undefined || name === null || name === 'buffer') return null;
  return normalEncoding(name, boundary);
}

const constants = {
  F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128,
  O_TRUNC: 512, O_APPEND: 1024, O_DIRECTORY: 65536, O_NOFOLLOW: 131072, S_IFMT: 61440, S_IFREG: 32768, S_IFDIR: 16384,
  S_IFCHR: 8192, S_IFBLK: 24576, S_IFIFO: 4096, S_IFLNK: 40960, S_IFSOCK: 49152,
};
const openFlags = { __proto__: null, 'r': 0, 'rs': 0, 'r+': 2, 'rs+': 2, 'w': 577, 'wx': 705, 'xw': 705, 'w+': 578, 'wx+': 706, 'xw+': 706,
                    'a': 1089, 'ax': 1217, 'xa': 1217, 'a+': 1090, 'ax+': 1218, 'xa+': 1218, 'as': 1089, 'as+': 1090 };

function flagNumber(flag, boundary) {
  if (typeof flag === 'number') return flag;
  const number = openFlags[flag];
  if (number === undefined) throw typeError('ERR_INVALID_ARG_VALUE', `The argument 'flags' is invalid. Received ${inspect(flag)}`, boundary);
  return number;
}

// ---- stat -------------------------------------------------------------------------------------------------

const fileTypes = [0, 24576, 8192, 16384, 32768, 49152, 49152, 40960];  // by WASI file type
const kBlock = 24576, kCharacter = 8192, kDirectory = 16384, kFile = 32768, kSocket = 49152, kLink = 40960;

class Stats {
  isFile() { return (this.mode & 61440) === kFile; }
  isDirectory() { return (this.mode & 61440) === kDirectory; }
  isSymbolicLink() { return (this.mode & 61440) === kLink; }
  isCharacterDevice() { return (this.mode & 61440) === kCharacter; }
  isBlockDevice() { return (this.mode & 61440) === kBlock; }
  isFIFO() { return false; }
  isSocket() { return (this.mode & 61440) === kSocket; }
}

function makeStats(buffer) {
  const fields = new NativeFloat64Array(buffer), stats = new Stats();
  const type = fileTypes[fields[0]] ?? 0, size = fields[1];
  const values = {
    __proto__: null, dev: fields[7], mode: type | (type === kDirectory ? 0o755 : type === kLink ? 0o777 : 0o644),
    nlink: fields[6], uid: 0, gid: 0, rdev: 0, blksize: 4096, ino: fields[5], size, blocks: mathFloor((size + 511) / 512),
    atimeMs: fields[3], mtimeMs: fields[2], ctimeMs: fields[4], birthtimeMs: fields[4],
    atime: new NativeDate(mathRound(fields[3])), mtime: new NativeDate(mathRound(fields[2])),
    ctime: new NativeDate(mathRound(fields[4])), birthtime: new NativeDate(mathRound(fields[4])),
  };
  const names = objectKeys(values);
  for (let i = 0; i < names.length; ++i) put(stats, names[i], values[names[i]]);
  return stats;
}

class Dirent {
  #type;
  constructor(name, parent, type) {
    this.name = name;
    this.parentPath = parent;
    this.path = parent;
    this.#type = type;
  }
  isFile() { return this.#type === kFile; }
  isDirectory() { return this.#type === kDirectory; }
  isSymbolicLink() { return this.#type === kLink; }
  isCharacterDevice() { return this.#type === kCharacter; }
  isBlockDevice() { return false; }
  isFIFO() { return false; }
  isSocket() { return false; }
}

/// [name, type] of each entry, sorted by name; or a status.
function listFolder(folder) {
  const listing = host.readdir(folder);
  if (typeof listing === 'number') return listing;
  const entries = [];
  if (listing === '') return entries;
  const items = stringSplit(listing, '\0');
  for (let i = 0; i < items.length; ++i) arrayPush(entries, [stringSlice(items[i], 1), fileTypes[+items[i][0]] ?? 0]);
  return arraySort(entries, (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
}

function joinPath(folder, name) {
  return stringEndsWith(folder, '/') ? folder + name : `${folder}/${name}`;
}

function typeOf(file) {
  const status = host.stat(file, false);
  return typeof status === 'number' ? status : fileTypes[new NativeFloat64Array(status)[0]];
}

/// Deletes a file or, all the way down, a folder. Returns a status.
function removeTree(file) {
  const type = typeOf(file);
  if (type < 0) return type;
  if (type !== kDirectory) return host.unlink(file);
  const entries = listFolder(file);
  if (typeof entries === 'number') return entries;
  for (let i = 0; i < entries.length; ++i) {
    const status = removeTree(joinPath(file, entries[i][0]));
    if (status < 0) return status;
  }
  return host.rmdir(file);
}

function copyTree(from, to, options, boundary) {
  const type = typeOf(from);
  if (type < 0) throw systemError(type, 'cp', from, boundary, to);
  if (type === kDirectory) {
    if (!options.recursive) throw systemError(-31, 'cp', from, boundary);
    fs.mkdirSync(to, { recursive: true });
    const entries = listFolder(from);
    for (let i = 0; i < entries.length; ++i) copyTree(joinPath(from, entries[i][0]), joinPath(to, entries[i][0]), options, boundary);
  } else if (type === kLink) {
    fs.symlinkSync(fs.readlinkSync(from), to);
  } else if (options.force !== false || !fs.existsSync(to)) {
    fs.copyFileSync(from, to);
  }
}

function timeMs(value) {
  if (isObject(value) && kindOf(value) === 'Date') return dateGetTime(value);
  return +value * 1000;
}

// ---- the synchronous API ----------------------------------------------------------------------------------

const fs = {
  constants,
  F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1,
  readFileSync(file, options) {
    const encoding = encodingOf(options, fs.readFileSync);
    const isFd = typeof file === 'number', target = isFd ? file : checkPath(file, 'path', fs.readFileSync);
    if (encoding === 'utf8') {
      const text = isFd ? host.readTextFd(target) : host.readText(target);
      if (typeof text === 'number') throw systemError(text, isFd || text === -31 ? 'read' : 'open', isFd || text === -31 ? undefined : target, fs.readFileSync);
      return text;
    }
    const data = isFd ? host.readAllFd(target) : host.readAll(target);
    if (typeof data === 'number') throw systemError(data, isFd || data === -31 ? 'read' : 'open', isFd || data === -31 ? undefined : target, fs.readFileSync);
    const buffer = bufferOver(data);
    return encoding === null ? buffer : decodeBytes(buffer, encoding);
  },
  writeFileSync(file, data, options) { writeWhole(file, data, options, 'w', fs.writeFileSync); return null; },
  appendFileSync(file, data, options) { writeWhole(file, data, options, 'a', fs.appendFileSync); return null; },
  existsSync(file) {
    const text = isObject(file) || typeof file === 'string' ? pathText(file) : undefined;
    return typeof text === 'string' && text !== '' && !stringIncludes(text, '\0') && typeof host.stat(text, true) !== 'number';
  },
  accessSync(file, _mode) {
    const target = checkPath(file, 'path', fs.accessSync), status = host.stat(target, true);
    if (typeof status === 'number') throw systemError(status, 'access', target, fs.accessSync);
    return undefined;
  },
  statSync(file, options) { return statOf(file, true, 'stat', options, fs.statSync); },
  lstatSync(file, options) { return statOf(file, false, 'lstat', options, fs.lstatSync); },
  fstatSync(fd) {
    const status = host.fstat(fd);
    if (typeof status === 'number') throw systemError(status, 'fstat', undefined, fs.fstatSync);
    return makeStats(status);
  },
  readdirSync(folder, options) {
    const target = checkPath(folder, 'path', fs.readdirSync), out = [];
    const visit = (at, prefix) => {
      const entries = listFolder(at);
      if (typeof entries === 'number') throw systemError(entries, 'scandir', at, fs.readdirSync);
      for (let i = 0; i < entries.length; ++i) {
        const name = entries[i][0], type = entries[i][1];
        arrayPush(out, options?.withFileTypes ? new Dirent(name, at, type) : prefix + name);
        if (options?.recursive && type === kDirectory) visit(joinPath(at, name), `${prefix}${name}/`);
      }
    };
    visit(target, '');
    return out;
  },
  mkdirSync(folder, options) {
    const target = checkPath(folder, 'path', fs.mkdirSync), recursive = isObject(options) && !!options.recursive;
    let status = host.mkdir(target);
    if (recursive && status < 0) status = makeFolders(target);
    if (status < 0) throw systemError(status, 'mkdir', target, fs.mkdirSync);
    return null;
  },
  mkdtempSync(prefix) {
    const start = checkPath(prefix, 'prefix', fs.mkdtempSync), letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
    const bytes = new NativeUint8Array(6);
    for (let attempt = 0; ; ++attempt) {
      fillRandom(bytes);
      let name = start;
      for (let i = 0; i < 6; ++i) name += letters[bytes[i] % letters.length];
      const status = host.mkdir(name);
      if (status >= 0) return name;
      if (status !== -20 || attempt > 20) throw systemError(status, 'mkdtemp', `${start}XXXXXX`, fs.mkdtempSync);
    }
  },
  rmSync(file, options) {
    const target = checkPath(file, 'path', fs.rmSync), type = typeOf(target);
    if (type < 0) {
      if (type === -44 && options?.force) return null;
      throw systemError(type, 'rm', target, fs.rmSync);
    }
    if (type === kDirectory && !options?.recursive) {
      const error = atCaller(new NativeError(`Path is a directory: rm returned EISDIR (is a directory) ${target}`), fs.rmSync);
      put(error, 'name', 'SystemError', false);
      put(error, 'errno', -21);
      put(error, 'code', 'ERR_FS_EISDIR');
      put(error, 'syscall', 'rm');
      put(error, 'path', target);
      throw error;
    }
    const status = removeTree(target);
    if (status < 0) throw systemError(status, 'rm', target, fs.rmSync);
    return null;
  },
  unlinkSync(file) { return onPath('unlink', file, host.unlink, fs.unlinkSync); },
  rmdirSync(folder, options) {
    if (options?.recursive) return fs.rmSync(folder, { recursive: true });
    return onPath('rmdir', folder, host.rmdir, fs.rmdirSync);
  },
  renameSync(from, to) { return onTwoPaths('rename', from, to, host.rename, fs.renameSync); },
  linkSync(from, to) { return onTwoPaths('link', from, to, host.link, fs.linkSync); },
  symlinkSync(target, file) {
    const to = checkPath(target, 'target', fs.symlinkSync), at = checkPath(file, 'path', fs.symlinkSync), status = host.symlink(to, at);
    if (status < 0) throw systemError(status, 'symlink', to, fs.symlinkSync, at);
    return null;
  },
  readlinkSync(file) {
    const target = checkPath(file, 'path', fs.readlinkSync), text = host.readlink(target);
    if (typeof text === 'number') throw systemError(text, 'readlink', target, fs.readlinkSync);
    return text;
  },
  realpathSync(file) {
    const target = checkPath(file, 'path', fs.realpathSync), text = host.realpath(target);
    if (typeof text === 'number') throw systemError(text, 'lstat', target, fs.realpathSync);
    return text;
  },
  copyFileSync(from, to, mode = 0) {
    const source = checkPath(from, 'src', fs.copyFileSync), target = checkPath(to, 'dest', fs.copyFileSync);
    const data = host.readAll(source);
    if (typeof data === 'number') throw systemError(data, 'copyfile', source, fs.copyFileSync, target);
    const status = host.writeData(target, data, 0, arrayBufferByteLength(data), mode & 1 ? openFlags.wx : openFlags.w);
    if (status < 0) throw systemError(status, 'copyfile', source, fs.copyFileSync, target);
    return null;
  },
  cpSync(from, to, options) {
    copyTree(checkPath(from, 'src', fs.cpSync), checkPath(to, 'dest', fs.cpSync), { ...options }, fs.cpSync);
    return null;
  },
  truncateSync(file, size = 0) {
    const target = checkPath(file, 'path', fs.truncateSync), status = host.truncate(target, size);
    if (status < 0) throw systemError(status, 'open', target, fs.truncateSync);
    return null;
  },
  ftruncateSync(fd, size = 0) { return onFd('ftruncate', host.ftruncate(fd, size), fs.ftruncateSync); },
  utimesSync(file, accessed, modified) {
    const target = checkPath(file, 'path', fs.utimesSync), status = host.utimes(target, timeMs(accessed), timeMs(modified));
    if (status < 0) throw systemError(status, 'utime', target, fs.utimesSync);
    return null;
  },
  chmodSync(file) {
    const target = checkPath(file, 'path', fs.chmodSync), status = host.stat(target, true);
    if (typeof status === 'number') throw systemError(status, 'chmod', target, fs.chmodSync);
    return null;  // the sandbox's files have no permission bits
  },
  openSync(file, flags = 'r') {
    const target = checkPath(file, 'path', fs.openSync), fd = host.open(target, flagNumber(flags, fs.openSync));
    if (fd < 0) throw systemError(fd, 'open', target, fs.openSync);
    return fd;
  },
  closeSync(fd) { return onFd('close', host.close(fd), fs.closeSync); },
  fsyncSync(fd) { return onFd('fsync', typeof host.fstat(fd) === 'number' ? -8 : 0, fs.fsyncSync); },
  readSync(fd, view, offset, length, position) {
    if (isObject(offset) && !isView(offset)) { length = offset.length; position = offset.position; offset = offset.offset; }
    const bytes = bytesOf(view);
    if (bytes === null) throw typeError('ERR_INVALID_ARG_TYPE', `The "buffer" argument must be an instance of Buffer, TypedArray, or DataView. Received ${received(view)}`, fs.readSync);
    const range = ioRange(bytes, offset, length, fs.readSync);
    const count = host.read(fd, typedArrayBuffer(bytes), typedArrayByteOffset(bytes) + range.offset, range.length, position ?? -1);
    if (count < 0) throw systemError(count, 'read', undefined, fs.readSync);
    return count;
  },
  writeSync(fd, data, offset, length, position) {
    let bytes, range;
    if (typeof data === 'string') {
      position = offset;
      bytes = encodeText(data, length);
      range = { __proto__: null, offset: 0, length: typedArrayLength(bytes) };
    } else {
      bytes = bytesOf(data);
      if (bytes === null) throw typeError('ERR_INVALID_ARG_TYPE', `The "buffer" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${received(data)}`, fs.writeSync);
      if (isObject(offset)) { length = offset.length; position = offset.position; offset = offset.offset; }
      range = ioRange(bytes, offset, length, fs.writeSync);
    }
    const count = host.writeAt(fd, typedArrayBuffer(bytes), typedArrayByteOffset(bytes) + range.offset, range.length, position ?? -1);
    if (count < 0) throw systemError(count, 'write', undefined, fs.writeSync);
    return count;
  },
};

function ioRange(bytes, offset, length, boundary) {
  offset ??= 0;
  length ??= typedArrayLength(bytes) - offset;
  if (!(offset >= 0 && offset <= typedArrayLength(bytes))) throw rangeError('offset', `>= 0 && <= ${typedArrayLength(bytes)}`, offset, boundary);
  if (!(length >= 0 && offset + length <= typedArrayLength(bytes))) throw rangeError('length', `>= 0 && <= ${typedArrayLength(bytes) - offset}`, length, boundary);
  return { __proto__: null, offset, length };
}

function writeWhole(file, data, options, defaultFlag, boundary) {
  const flags = flagNumber((isObject(options) ? options.flag : undefined) ?? defaultFlag, boundary);
  const encoding = encodingOf(options, boundary);
  const isFd = typeof file === 'number', target = isFd ? file : checkPath(file, 'path', boundary);
  let status;
  if (typeof data === 'string' && (encoding === null || encoding === 'utf8') && !isFd) {
    status = host.writeText(target, data, flags);
  } else {
    const bytes = typeof data === 'string' ? encodeText(data, encoding ?? 'utf8') : bytesOf(data);
    if (bytes === null) {
      throw typeError('ERR_INVALID_ARG_TYPE', `The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${received(data)}`, boundary);
    }
    const buffer = typedArrayBuffer(bytes), offset = typedArrayByteOffset(bytes), length = typedArrayLength(bytes);
    status = isFd ? host.writeAt(target, buffer, offset, length, -1) : host.writeData(target, buffer, offset, length, flags);
  }
  // A full disk or too large a file shows up while writing, everything else on opening.
  if (status < 0) throw systemError(status, isFd || status === -22 || status === -51 ? 'write' : 'open', isFd || status === -22 || status === -51 ? undefined : target, boundary);
}

function statOf(file, follow, syscall, options, boundary) {
  const target = checkPath(file, 'path', boundary), status = host.stat(target, follow);
  if (typeof status !== 'number') return makeStats(status);
  if (options?.throwIfNoEntry === false && (status === -44 || status === -54)) return undefined;
  throw systemError(status, syscall, target, boundary);
}

function onPath(syscall, file, operation, boundary) {
  const target = checkPath(file, 'path', boundary), status = operation(target);
  if (status < 0) throw systemError(status, syscall, target, boundary);
  return null;
}

function onTwoPaths(syscall, from, to, operation, boundary) {
  const source = checkPath(from, 'oldPath', boundary), target = checkPath(to, 'newPath', boundary), status = operation(source, target);
  if (status < 0) throw systemError(status, syscall, source, boundary, target);
  return null;
}

function onFd(syscall, status, boundary) {
  if (status < 0) throw systemError(status, syscall, undefined, boundary);
  return null;
}

/// mkdir -p. Returns a status; an existing folder is success.
function makeFolders(target) {
  const parts = stringSplit(target, '/');
  let at = target[0] === '/' ? '/' : '';
  for (let i = 0; i < parts.length; ++i) {
    if (parts[i] === '') continue;
    at = at === '' || at === '/' ? at + parts[i] : `${at}/${parts[i]}`;
    const status = host.mkdir(at);
    if (status < 0) {
      const found = host.stat(at, true);
      if (typeof found === 'number') return status;
      if (fileTypes[new NativeFloat64Array(found)[0]] !== kDirectory) return i + 1 === parts.length ? -20 : -54;
    }
  }
  return 0;
}

// ---- promises and callbacks -------------------------------------------------------------------------------

const fsPromises = { constants };
for (const name of objectKeys(fs)) {
  if (!name.endsWith('Sync')) continue;
  const sync = fs[name], short = name.slice(0, -4);
  const names = { async [short](...args) { const value = reflectApply(sync, fs, args); return value === null ? undefined : value; } };
  if (short !== 'exists' && short !== 'open' && short !== 'close' && short !== 'read' && short !== 'write' && !short.startsWith('f')) {
    put(fsPromises, short, names[short]);
  }
  const callbackStyle = {
    [short](...args) {
      const done = arrayPop(args);
      checkCallback(done, callbackStyle[short]);
      let error = null, value;
      try { value = reflectApply(sync, fs, args); } catch (caught) { error = caught; }
      setImmediate(() => {
        if (short === 'exists') done(value);
        else if (error !== null) done(error);
        else done(null, value === null ? undefined : value);
      });
    },
  };
  put(fs, short, callbackStyle[short]);
}

class FileHandle {
  #fd;
  constructor(fd) { this.#fd = fd; }
  get fd() { return this.#fd; }
  async close() { if (this.#fd >= 0) fs.closeSync(this.#fd); this.#fd = -1; }
  async read(view, offset, length, position) {
    const buffer = isView(view) ? view : Buffer.alloc(view?.length ?? 16384);
    return { bytesRead: fs.readSync(this.#fd, buffer, offset, length, position), buffer };
  }
  async write(data, offset, length, position) { return { bytesWritten: fs.writeSync(this.#fd, data, offset, length, position), buffer: data }; }
  async readFile(options) { return fs.readFileSync(this.#fd, options); }
  async writeFile(data, options) { fs.writeFileSync(this.#fd, data, options); }
  async appendFile(data, options) { fs.writeFileSync(this.#fd, data, options); }
  async stat() { return fs.fstatSync(this.#fd); }
  async truncate(size) { fs.ftruncateSync(this.#fd, size); }
  async sync() {}
}
put(fsPromises, 'open', { async open(file, flags) { return new FileHandle(fs.openSync(file, flags)); } }.open);
put(fsPromises, 'access', { async access(file, mode) { fs.accessSync(file, mode); } }.access);
put(fs, 'promises', fsPromises);
put(fs, 'Stats', Stats);
put(fs, 'Dirent', Dirent);
