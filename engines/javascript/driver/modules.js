// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// require: the built-in modules that exist here, and CommonJS or JSON files of the sandbox.

const builtinMakers = {
  __proto__: null,
  'assert': () => assert,
  'assert/strict': () => strict,
  'buffer': () => ({ Buffer, atob: nativeAtob, btoa: nativeBtoa, constants: { MAX_LENGTH: 2147483647, MAX_STRING_LENGTH: 1073741823 }, kMaxLength: 2147483647 }),
  'console': () => consoleObject,
  'crypto': () => nodeCrypto,
  'events': () => eventsModule,
  'fs': () => fs,
  'fs/promises': () => fsPromises,
  'module': () => moduleModule,
  'os': () => ({
    EOL: '\n', arch: () => 'wasm32', platform: () => 'linux', type: () => 'Linux', release: () => '0', hostname: () => 'sandbox',
    homedir: homeFolder, tmpdir: () => '/tmp', cpus: () => [], totalmem: () => host.memorySize(), freemem: () => 0,
    endianness: () => 'LE', uptime: () => host.now() / 1000, loadavg: () => [0, 0, 0], availableParallelism: () => 1,
    userInfo: () => ({ username: 'sandbox', uid: 0, gid: 0, shell: null, homedir: homeFolder() }), devNull: '/dev/null',
  }),
  'path': () => path,
  'path/posix': () => path,
  'perf_hooks': () => ({ performance: performanceObject }),
  'process': () => processObject,
  'querystring': () => querystring,
  'readline': () => readline,
  'string_decoder': () => ({ StringDecoder }),
  'timers': () => ({ setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate }),
  'timers/promises': () => timersPromises,
  'url': () => urlModule,
  'util': () => util,
  'util/types': () => util.types,
};

/// JavaScript for TypeScript, from the driver's own realm; or the error to throw. Errors of that realm must not get out.
function typesStripped(code, isModule, where, boundary) {
  let answer;
  try { answer = host.stripTypes(code, isModule); } catch { answer = '?0:too deeply nested'; }
  if (answer[0] === '=') return stringSlice(answer, 1);
  const colon = stringIndexOf(answer, ':'), place = stringSlice(answer, 1, colon);
  const error = new NativeSyntaxError(`${where === '' ? '' : `${where}:${place}: `}${stringSlice(answer, colon + 1)}`);
  put(error, 'code', answer[0] === '!' ? 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX' : 'ERR_INVALID_TYPESCRIPT_SYNTAX');
  put(error, 'lineNumber', +place, false);
  put(error, 'isIncomplete', answer[0] === '&', false);
  return atCaller(error, boundary);
}

const moduleModule = {
  get builtinModules() { return objectKeys(builtinMakers); },
  isBuiltin: (name) => hasBuiltin(`${name}`),
  createRequire(file) {
    const name = typeof file === 'string' && !stringStartsWith(file, 'file:') ? file : urlModule.fileURLToPath(file);
    const folder = path.dirname(name);
    return makeRequire(() => folder);
  },
  /// Whatever the mode: enums and the like are written out too.
  stripTypeScriptTypes(code) {
    if (typeof code !== 'string') throw typeError('ERR_INVALID_ARG_TYPE', `The "code" argument must be of type string. Received ${received(code)}`, moduleModule.stripTypeScriptTypes);
    const text = typesStripped(code, false, '', moduleModule.stripTypeScriptTypes);
    if (typeof text !== 'string') throw text;
    return text;
  },
};

const timersPromises = {
  setTimeout(ms, value) { return new NativePromise((resolve) => setTimeout(() => resolve(value), ms)); },
  setImmediate(value) { return new NativePromise((resolve) => setImmediate(() => resolve(value))); },
  async* setInterval(ms, value) { for (;;) { await timersPromises.setTimeout(ms); yield value; } },
};

const urlModule = {
  URL, URLSearchParams,
  fileURLToPath(url) {
    const parsed = typeof url === 'string' ? new URL(url) : url;
    if (parsed.protocol !== 'file:') throw typeError('ERR_INVALID_URL_SCHEME', 'The URL must be of scheme file', urlModule.fileURLToPath);
    return percentDecode(parsed.pathname);
  },
  pathToFileURL(file) { return new URL(`file://${percentEncode(path.resolve(file), makeSet(pathSet, '%\\'))}`); },
  format(url) { return typeof url === 'string' ? url : `${url.href ?? url}`; },
  domainToASCII(domain) { return domainToAscii(`${domain}`) ?? ''; },
};

const querystring = {
  parse(text, separator = '&', equals = '=') {
    const out = objectCreate(null), pieces = stringSplit(`${text}`, separator);
    for (let i = 0; i < pieces.length; ++i) {
      if (pieces[i] === '') continue;
      const at = stringIndexOf(pieces[i], equals), decode = (part) => percentDecode(stringReplaceAll(part, '+', ' '));
      const key = decode(at < 0 ? pieces[i] : stringSlice(pieces[i], 0, at)), value = at < 0 ? '' : decode(stringSlice(pieces[i], at + equals.length));
      if (!hasOwn(out, key)) out[key] = value;
      else if (arrayIsArray(out[key])) arrayPush(out[key], value);
      else out[key] = [out[key], value];
    }
    return out;
  },
  stringify(object, separator = '&', equals = '=') {
    const parts = [], keys = objectKeys(object), text = (value) => querystring.escape(isObject(value) || value === undefined || value === null ? '' : `${value}`);
    for (let i = 0; i < keys.length; ++i) {
      const value = object[keys[i]], list = arrayIsArray(value) ? value : [value];
      for (let k = 0; k < list.length; ++k) arrayPush(parts, `${querystring.escape(keys[i])}${equals}${text(list[k])}`);
    }
    return arrayJoin(parts, separator);
  },
  escape(text) { return percentEncode(`${text}`, querystringSet); },
  unescape(text) { return percentDecode(`${text}`); },
};
const querystringSet = makeSet(userinfoSet, '$%&+,');

class StringDecoder {
  #decoder; #encoding; #left = noBytes;
  constructor(encoding = 'utf8') {
    this.#encoding = normalEncoding(encoding, StringDecoder);
    if (this.#encoding === 'utf8') this.#decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    else if (this.#encoding === 'utf16le') this.#decoder = new TextDecoder('utf-16le', { ignoreBOM: true });
  }
  get encoding() { return this.#encoding; }
  write(chunk) {
    if (typeof chunk === 'string') return chunk;
    if (this.#decoder !== undefined) return this.#decoder.decode(chunk, { stream: true });
    if (this.#encoding === 'base64' || this.#encoding === 'base64url') {
      const bytes = joinBytes(this.#left, chunk), whole = typedArrayLength(bytes) - typedArrayLength(bytes) % 3;
      this.#left = copyBytes(bytes, whole, typedArrayLength(bytes));
      return decodeBytes(bytes, this.#encoding, 0, whole);
    }
    return decodeBytes(chunk, this.#encoding);
  }
  end(chunk) {
    let text = chunk === undefined ? '' : this.write(chunk);
    if (this.#decoder !== undefined) text += this.#decoder.decode();
    else if (typedArrayLength(this.#left) > 0) { text += decodeBytes(this.#left, this.#encoding); this.#left = noBytes; }
    return text;
  }
}

/// node:readline over a read stream: there is no terminal, so lines come from the whole of it.
class ReadlineInterface extends EventEmitter {
  #input; #lines; /* the next one last */ #closed = false; #questions = [];
  constructor(options) {
    super();
    this.#input = options?.input;
    put(this, 'output', options?.output, false);
    setImmediate(() => this.#run());
  }
  #read() {
    if (this.#lines === undefined) {
      const text = isReadStream(this.#input) ? restOfStream(this.#input) : fs.readFileSync(0, 'utf8');
      this.#lines = text === '' ? [] : stringSplit(stringReplaceAll(text, '\r\n', '\n'), '\n');
      if (this.#lines.length > 0 && this.#lines[this.#lines.length - 1] === '') arrayPop(this.#lines);
      arrayReverse(this.#lines);
    }
    return this.#lines;
  }
  #run() {
    if (this.#closed) return;
    const lines = this.#read();
    if (this.#questions.length > 0) {
      const answer = arrayShift(this.#questions);
      if (lines.length === 0) return this.close();
      answer(arrayPop(lines));
      setImmediate(() => this.#run());
    } else if (this.listenerCount('line') > 0) {
      if (lines.length === 0) return this.close();
      this.emit('line', arrayPop(lines));
      setImmediate(() => this.#run());
    }
    return undefined;
  }
  question(prompt, options, done) {
    this.output?.write?.(prompt);
    arrayPush(this.#questions, done ?? options);
    setImmediate(() => this.#run());
  }
  on(event, listener) {
    super.on(event, listener);
    if (event === 'line') setImmediate(() => this.#run());
    return this;
  }
  setPrompt() {}
  prompt() { setImmediate(() => this.#run()); }
  write() {}
  pause() { return this; }
  resume() { return this; }
  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.emit('close');
  }
  async* [symbolAsyncIterator]() {
    const lines = this.#read();
    while (lines.length > 0) yield arrayPop(lines);
  }
}
const readline = {
  createInterface(options, output) { return new ReadlineInterface(isReadStream(options) ? { input: options, output } : options); },
  Interface: ReadlineInterface,
  promises: {
    createInterface(options) {
      const made = new ReadlineInterface(options), ask = made.question;
      method(made, 'question', (prompt) => new NativePromise((resolve) => reflectApply(ask, made, [prompt, resolve])));
      return made;
    },
  },
};
builtinMakers['readline/promises'] = () => readline.promises;

const builtinCache = objectCreate(null);

function builtinName(request) {
  return stringStartsWith(request, 'node:') ? stringSlice(request, 5) : request;
}

function hasBuiltin(request) {
  return builtinMakers[builtinName(request)] !== undefined;
}

function builtin(name) {
  return builtinCache[name] ??= builtinMakers[name]();
}

// ---- files ------------------------------------------------------------------------------------------------

const moduleCache = objectCreate(null);
const loadingFiles = [];  // the innermost last

// Modules of Node that programs ask for and that cannot or do not exist here.
const missingModules = objectCreate(null);
for (const name of ['http', 'https', 'http2', 'net', 'tls', 'dns', 'dns/promises', 'dgram']) missingModules[name] = 'the sandbox has no network';
for (const name of ['child_process', 'cluster', 'worker_threads']) missingModules[name] = 'the sandbox has no processes or threads';
for (const name of ['async_hooks', 'diagnostics_channel', 'inspector', 'punycode', 'repl', 'stream', 'stream/promises', 'tty', 'v8', 'vm', 'wasi', 'zlib']) {
  missingModules[name] = 'this module of Node does not exist here';
}

function moduleNotFound(request, boundary) {
  const reason = missingModules[builtinName(request)];
  const error = new NativeError(`Cannot find module '${request}'${reason === undefined ? '' : `: ${reason}`}`);
  put(error, 'code', 'MODULE_NOT_FOUND');
  return atCaller(error, boundary);
}

function isFile(file) { return typeOfFollowing(file) === kFile; }
function typeOfFollowing(file) {
  const status = host.stat(file, true);
  return typeof status === 'number' ? status : fileTypes[new NativeFloat64Array(status)[0]];
}

/// The file a request names, tried as it is, with the usual endings, and as a folder's index.
function resolveFile(file) {
  const endings = ['', '.js', '.cjs', '.json', '.ts', '.cts'];
  for (let i = 0; i < endings.length; ++i) if (isFile(file + endings[i])) return file + endings[i];
  if (typeOfFollowing(file) === kDirectory) {
    const about = host.readText(joinPath(file, 'package.json'));
    if (typeof about === 'string') {
      let main;
      try { main = jsonParse(about).main; } catch { /* not a package */ }
      if (typeof main === 'string') {
        const found = resolveFile(path.resolve(file, main));
        if (found !== undefined) return found;
      }
    }
    for (let i = 1; i < endings.length; ++i) if (isFile(joinPath(file, `index${endings[i]}`))) return joinPath(file, `index${endings[i]}`);
  }
  return undefined;
}

function makeRequire(folder) {
  const resolve = (request, boundary) => {
    if (request[0] === '.' || request[0] === '/') {
      const found = resolveFile(path.resolve(folder(), request));
      if (found !== undefined) return found;
    } else {
      for (let at = folder(); ; at = path.dirname(at)) {
        const found = resolveFile(joinPath(joinPath(at, 'node_modules'), request));
        if (found !== undefined) return found;
        if (at === '/') break;
      }
    }
    throw moduleNotFound(request, boundary);
  };
  const made = function require(request) {
    if (typeof request !== 'string') throw typeError('ERR_INVALID_ARG_TYPE', `The "id" argument must be of type string. Received ${received(request)}`, made);
    const name = builtinName(request);
    if (builtinMakers[name] !== undefined) return builtin(name);
    return loadFile(resolve(request, made));
  };
  method(made, 'resolve', (request) => (hasBuiltin(request) ? request : resolve(request, made.resolve)));
  put(made, 'cache', moduleCache);
  return made;
}

function loadFile(file) {
  const known = moduleCache[file];
  if (known !== undefined) return known.exports;
  let text = host.readText(file);
  if (typeof text === 'number') throw systemError(text, 'open', file, loadFile);
  if (stringEndsWith(file, '.ts') || stringEndsWith(file, '.cts')) {
    text = typesStripped(text, true, file, loadFile);
    if (typeof text !== 'string') throw text;
  }
  const module = { exports: {}, id: file, filename: file, loaded: false, children: [], paths: [] };
  moduleCache[file] = module;
  arrayPush(loadingFiles, file);
  try {
    if (stringEndsWith(file, '.json')) {
      try {
        module.exports = jsonParse(stringCharCodeAt(text, 0) === 0xfeff ? stringSlice(text, 1) : text);
      } catch (error) {
        put(error, 'message', `${file}: ${errorMessage(error)}`, false);
        throw error;
      }
    } else {
      const folder = path.dirname(file);
      // On one line with the file's first, so that line numbers stay right.
      const wrapper = host.evalScript(`(function (exports, require, module, __filename, __dirname) {${stringStartsWith(text, '#!') ? '//' : ''}${text}\n})`, file);
      const local = makeRequire(() => folder);
      put(module, 'require', local, false);
      reflectApply(wrapper, module.exports, [module.exports, local, module, file, folder]);
    }
    module.loaded = true;
  } catch (error) {
    deleteProperty(moduleCache, file);
    throw error;
  } finally {
    arrayPop(loadingFiles);
  }
  return module.exports;
}

/// A run that was stopped leaves modules behind that are not whole.
function forgetHalfLoadedFiles() {
  while (loadingFiles.length > 0) deleteProperty(moduleCache, arrayPop(loadingFiles));
}

/// Where the program lies: a file of the workspace beside what it requires, all others in the current folder.
function programFolder() {
  const file = host.fileName();
  return stringStartsWith(file, '/workspace/') || stringStartsWith(file, '/home/user/') ? path.dirname(file) : host.cwd();
}

const require = makeRequire(programFolder);

// What a program for Node may expect of being the main module.
const mainModule = { exports: {}, id: '.', loaded: false, children: [], paths: [] };
put(mainModule, 'require', require, false);
put(require, 'main', mainModule);

/// Source text of a built-in as an ES module; evaluated at bake, before `require` can be anything else.
function builtinModuleSource(name) {
  const names = objectKeys(builtin(name)), list = [];
  for (let i = 0; i < names.length; ++i) {
    if (names[i] !== 'default' && regexpExec(/^[a-zA-Z_$][\w$]*$/, names[i]) !== null && !arrayIncludes(reservedWords, names[i])) arrayPush(list, names[i]);
  }
  let text = `const m = require(${jsonStringify(name)}); export default m;`;
  for (let i = 0; i < list.length; ++i) text += ` const v${i} = m.${list[i]}; export { v${i} as ${list[i]} };`;
  return text;
}
const reservedWords = ['default'];
