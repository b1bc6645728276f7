// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// process: what the run was given (environment, arguments, directory) and how it ends.

let environment, argumentList, exitCode, standardInput;
// The host keeps the directory; this copy tells a host that restored this interpreter's memory.
let workingDirectory = '/workspace';
const kArmExit = 4, kArmUncaught = 8;

function currentEnvironment() {
  if (environment === undefined) environment = jsonParse(host.environment());
  return environment;
}

function homeFolder() {
  const home = currentEnvironment()?.HOME;
  return typeof home === 'string' ? home : '/workspace';
}

function checkedExitCode(code, boundary) {
  if (code === undefined || code === null) return undefined;
  const number = typeof code === 'string' && code !== '' ? +code : code;
  if (typeof number !== 'number' || !numberIsInteger(number)) {
    throw typeError('ERR_INVALID_ARG_TYPE', `The "code" argument must be of type number. Received ${received(code)}`, boundary);
  }
  return number;
}

const signalNames = [
  '', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGKILL', 'SIGUSR1', 'SIGSEGV', 'SIGUSR2', 'SIGPIPE',
  'SIGALRM', 'SIGTERM', 'SIGSTKFLT', 'SIGCHLD', 'SIGCONT', 'SIGSTOP', 'SIGTSTP', 'SIGTTIN', 'SIGTTOU', 'SIGURG', 'SIGXCPU', 'SIGXFSZ',
  'SIGVTALRM', 'SIGPROF', 'SIGWINCH', 'SIGIO', 'SIGPWR', 'SIGSYS',
];
const otherSignalNames = { __proto__: null, SIGIOT: 6, SIGPOLL: 29 };
const harmlessSignals = [17, 18, 23, 28];  // CHLD, CONT, URG, WINCH
const signalMax = 64;

function signalNumber(signal = 'SIGTERM', boundary) {
  if (typeof signal === 'number' && signal === (signal | 0)) {
    if (signal < 0 || signal > signalMax) throw systemError(-28, 'kill', undefined, boundary);
    return signal;
  }
  const number = typeof signal !== 'string' || signal === '' ? -1 : otherSignalNames[signal] ?? arrayIndexOf(signalNames, signal);
  if (number < 0) throw typeError('ERR_UNKNOWN_SIGNAL', `Unknown signal: ${typeof signal === 'symbol' ? symbolToString(signal) : signal}`, boundary);
  return number;
}

const processObject = {};

function makeProcess() {
  const lazy = (name, make) => {
    let made;
    defineProperty(processObject, name, {
      __proto__: null, enumerable: true, configurable: true,
      get() { return made ??= make(); },
      set(value) { put(processObject, name, value); },
    });
  };
  setPrototypeOf(processObject, objectCreate(EventEmitter.prototype));
  put(getPrototypeOf(processObject), 'constructor', { process: class process {} }.process, false);
  put(processObject, symbolToStringTag, 'process', false);
  put(processObject, 'title', 'sandbox');
  put(processObject, 'version', 'v22.0.0');
  put(processObject, 'versions', { quickjs: host.engineVersion });
  put(processObject, 'arch', 'wasm32');
  put(processObject, 'platform', 'linux');
  put(processObject, 'pid', 1);
  put(processObject, 'ppid', 0);
  put(processObject, 'execPath', '/usr/bin/javascript');
  put(processObject, 'execArgv', []);
  put(processObject, 'release', { name: 'sandbox-workers' });
  defineProperty(processObject, 'env', {
    __proto__: null, enumerable: true, configurable: true,
    get() { return currentEnvironment(); },
    set(value) { environment = value; },
  });
  defineProperty(processObject, 'argv', {
    __proto__: null, enumerable: true, configurable: true,
    get() { return argumentList ??= jsonParse(host.argumentList()); },
    set(value) { argumentList = value; },
  });
  defineProperty(processObject, 'exitCode', {
    __proto__: null, enumerable: true, configurable: true,
    get() { return exitCode; },
    set(code) { exitCode = checkedExitCode(code); host.setExitCode(exitCode ?? 0); },
  });
  lazy('stdout', () => new WriteStream(undefined, { fd: 1 }));
  lazy('stderr', () => new WriteStream(undefined, { fd: 2 }));
  defineProperty(processObject, 'stdin', {
    __proto__: null, enumerable: true, configurable: true,
    get() { return standardInput ??= new ReadStream(0, { fd: 0 }); },
    set(value) { standardInput = value; },
  });

  const methods = {
    cwd() { return host.cwd(); },
    chdir(path) {
      checkPath(path, 'directory', chdir);
      const status = host.chdir(pathText(path));
      if (status < 0) throw systemError(status, 'chdir', workingDirectory, chdir, pathText(path));
      workingDirectory = host.cwd();
    },
    exit(code) {
      const status = checkedExitCode(code, methods.exit) ?? exitCode ?? 0;
      runExitListeners(status);
      host.exit(status);
    },
    abort() { host.exit(134); },
    reallyExit(code) { host.exit(code ?? 0); },
    nextTick,
    hrtime(previous) {
      const now = host.now() * 1e6, seconds = mathFloor(now / 1e9), nanos = mathFloor(now % 1e9);
      if (previous === undefined) return [seconds, nanos];
      let s = seconds - previous[0], n = nanos - previous[1];
      if (n < 0) { --s; n += 1e9; }
      return [s, n];
    },
    uptime() { return (host.now() - host.start()) / 1000; },
    memoryUsage() {
      const size = host.memorySize(), used = host.memoryUsed();
      return { rss: size, heapTotal: size, heapUsed: used, external: 0, arrayBuffers: 0 };
    },
    cpuUsage() { return { user: mathRound((host.now() - host.start()) * 1000), system: 0 }; },
    umask() { return 0o22; },
    getuid() { return 0; },
    getgid() { return 0; },
    emitWarning(warning) {
      printLine(2, `(node) ${isErrorLike(warning) ? errorToText(warning) : `Warning: ${warning}`}`);
    },
    kill(pid, signal) {
      if (typeof pid !== 'number' || pid !== (pid | 0)) {
        throw typeError('ERR_INVALID_ARG_TYPE', `The "pid" argument must be of type number. Received ${received(pid)}`, methods.kill);
      }
      const number = signalNumber(signal, methods.kill);
      if (pid !== 1) throw systemError(-71, 'kill', undefined, methods.kill);
      if (number !== 0 && !arrayIncludes(harmlessSignals, number)) host.exit(128 + number);
      return true;
    },
    getBuiltinModule(name) { return hasBuiltin(name) ? require(name) : undefined; },
  };
  const chdir = methods.chdir;
  for (const name of objectKeys(methods)) method(processObject, name, methods[name]);
  method(methods.hrtime, 'bigint', () => NativeBigInt(mathFloor(host.now() * 1e6)));
  method(methods.memoryUsage, 'rss', () => host.memorySize());

  // Listeners for the end of the run, and for errors nobody caught, need the host's attention.
  for (const name of ['on', 'addListener', 'once', 'prependListener']) {
    const original = EventEmitter.prototype[name];
    method(processObject, name, function (event, listener) {
      reflectApply(original, processObject, [event, listener]);
      if (event === 'exit' || event === 'beforeExit') host.arm(kArmExit);
      if (event === 'uncaughtException' || event === 'unhandledRejection') host.arm(kArmUncaught);
      return processObject;
    });
  }
}

let exiting = false;
function runExitListeners(code) {
  if (exiting) return;
  exiting = true;
  try {
    emitEvent(processObject, 'exit', [code]);
  } finally {
    exiting = false;
  }
}

/// At the end of a one-shot run: 'beforeExit' may arm more work, 'exit' may not.
function runBeforeExit() { emitEvent(processObject, 'beforeExit', [exitCode ?? 0]); }

/// Gives an error that nothing caught to the user's own handlers. True when there was one.
function offerUncaught(kind, error, promise) {
  if (kind === 1 && emitEvent(processObject, 'unhandledRejection', [error, promise])) return true;
  return emitEvent(processObject, 'uncaughtException', [error, kind === 1 ? 'unhandledRejection' : 'uncaughtException']);
}

/// What belongs to one run starts anew in the next.
function resetRun() {
  dropTimers();
  forgetHalfLoadedFiles();
  exiting = false;  // the end of a run passes every `finally`
  environment = undefined;
  argumentList = undefined;
  exitCode = undefined;
  standardInput = undefined;
  groupIndent = '';
}
