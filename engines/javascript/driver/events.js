// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// EventEmitter (Node) and Event, EventTarget, AbortController (DOM).

const listenerLists = new NativeWeakMap();  // emitter -> Map of event -> [{ fn, once }]

function listenersOf(emitter, event, make) {
  let all = weakMapGet(listenerLists, emitter);
  if (all === undefined) {
    if (!make) return undefined;
    all = new NativeMap();
    weakMapSet(listenerLists, emitter, all);
  }
  let list = mapGet(all, event);
  if (list === undefined && make) {
    list = [];
    mapSet(all, event, list);
  }
  return list;
}

function addListener(emitter, event, fn, once, first, boundary) {
  if (typeof fn !== 'function') {
    throw typeError('ERR_INVALID_ARG_TYPE', `The "listener" argument must be of type function. Received ${received(fn)}`, boundary);
  }
  const list = listenersOf(emitter, event, true), entry = { __proto__: null, fn, once };
  if (first) arrayUnshift(list, entry);
  else arrayPush(list, entry);
  return emitter;
}

function removeEntry(emitter, event, matches) {
  const list = listenersOf(emitter, event, false);
  if (list === undefined) return;
  for (let i = list.length - 1; i >= 0; --i) {
    if (!matches(list[i])) continue;
    // A new list, so that an emit in progress goes on over the old one.
    mapSet(weakMapGet(listenerLists, emitter), event, arrayFilter(list, (entry) => entry !== list[i]));
    return;
  }
}

function emitEvent(emitter, event, args) {
  const list = listenersOf(emitter, event, false);
  if (list === undefined || list.length === 0) return false;
  const current = arraySlice(list);
  for (let i = 0; i < current.length; ++i) {
    const entry = current[i];
    if (entry.once) removeEntry(emitter, event, (other) => other === entry);
    reflectApply(entry.fn, emitter, args);
  }
  return true;
}

class EventEmitter {
  on(event, listener) { return addListener(this, event, listener, false, false, this.on); }
  addListener(event, listener) { return addListener(this, event, listener, false, false, this.addListener); }
  once(event, listener) { return addListener(this, event, listener, true, false, this.once); }
  prependListener(event, listener) { return addListener(this, event, listener, false, true, this.prependListener); }
  prependOnceListener(event, listener) { return addListener(this, event, listener, true, true, this.prependOnceListener); }
  off(event, listener) { removeEntry(this, event, (entry) => entry.fn === listener); return this; }
  removeListener(event, listener) { removeEntry(this, event, (entry) => entry.fn === listener); return this; }
  removeAllListeners(event) {
    const all = weakMapGet(listenerLists, this);
    if (all === undefined) return this;
    if (event === undefined) weakMapSet(listenerLists, this, new NativeMap());
    else mapDelete(all, event);
    return this;
  }
  emit(event, ...args) {
    if (emitEvent(this, event, args)) return true;
    if (event === 'error') {
      if (isErrorLike(args[0])) throw args[0];
      const error = new NativeError(`Unhandled error. (${typeof args[0] === 'string' ? quote(args[0]) : inspect(args[0])})`);
      put(error, 'code', 'ERR_UNHANDLED_ERROR');
      put(error, 'context', args[0]);
      throw error;
    }
    return false;
  }
  listenerCount(event) { return listenersOf(this, event, false)?.length ?? 0; }
  listeners(event) { return arrayMap(listenersOf(this, event, false) ?? [], (entry) => entry.fn); }
  rawListeners(event) { return arrayMap(listenersOf(this, event, false) ?? [], (entry) => entry.fn); }
  eventNames() {
    const names = [], all = weakMapGet(listenerLists, this);
    if (all !== undefined) mapForEach(all, (list, name) => { if (list.length > 0) arrayPush(names, name); });
    return names;
  }
  setMaxListeners() { return this; }
  getMaxListeners() { return 10; }
}

const eventsModule = EventEmitter;
put(EventEmitter, 'EventEmitter', EventEmitter);
put(EventEmitter, 'defaultMaxListeners', 10);
method(EventEmitter, 'once', function once(emitter, event) {
  return new NativePromise((resolve, reject) => {
    const done = (...args) => { emitter.removeListener('error', failed); resolve(args); };
    const failed = (error) => { emitter.removeListener(event, done); reject(error); };
    emitter.once(event, done);
    if (event !== 'error') emitter.once('error', failed);
  });
});

// ---- DOM events -------------------------------------------------------------------------------------------

class Event {
  #type; #options; #target = null; #current = null; #prevented = false; #stopped = false; #stamp = host.now();
  constructor(type, options) {
    if (arguments.length === 0) throw atCaller(new NativeTypeError('Event needs a type'), Event);
    this.#type = `${type}`;
    this.#options = { bubbles: !!options?.bubbles, cancelable: !!options?.cancelable, composed: !!options?.composed };
  }
  get type() { return this.#type; }
  get target() { return this.#target; }
  get srcElement() { return this.#target; }
  get currentTarget() { return this.#current; }
  get bubbles() { return this.#options.bubbles; }
  get cancelable() { return this.#options.cancelable; }
  get composed() { return this.#options.composed; }
  get defaultPrevented() { return this.#prevented; }
  get returnValue() { return !this.#prevented; }
  get eventPhase() { return this.#current === null ? 0 : 2; }
  get timeStamp() { return this.#stamp; }
  get isTrusted() { return false; }
  preventDefault() { if (this.#options.cancelable) this.#prevented = true; }
  stopPropagation() {}
  stopImmediatePropagation() { this.#stopped = true; }
  composedPath() { return this.#current === null ? [] : [this.#current]; }
  static _begin(event, target) { event.#target = target; event.#current = target; event.#stopped = false; }
  static _end(event) { event.#current = null; }
  static _stopped(event) { return event.#stopped; }
  static _is(value) { return isObject(value) && #type in value; }
}
const { _begin: eventBegin, _end: eventEnd, _stopped: eventStopped, _is: isEvent } = Event;
for (const name of ['_begin', '_end', '_stopped', '_is']) delete Event[name];
put(Event.prototype, symbolToStringTag, 'Event', false);

class CustomEvent extends Event {
  #detail;
  constructor(type, options) { super(type, options); this.#detail = options?.detail ?? null; }
  get detail() { return this.#detail; }
}

class EventTarget {
  #listeners = new NativeMap();
  addEventListener(type, listener, options) {
    if (listener === null || listener === undefined) return;
    type = `${type}`;
    const once = isObject(options) ? !!options.once : false, signal = isObject(options) ? options.signal : undefined;
    if (signal?.aborted) return;
    let list = mapGet(this.#listeners, type);
    if (list === undefined) { list = []; mapSet(this.#listeners, type, list); }
    for (let i = 0; i < list.length; ++i) if (list[i].listener === listener) return;
    arrayPush(list, { __proto__: null, listener, once, removed: false });
    if (signal !== undefined) signal.addEventListener('abort', () => this.removeEventListener(type, listener));
  }
  removeEventListener(type, listener) {
    const list = mapGet(this.#listeners, `${type}`);
    if (list === undefined) return;
    for (let i = 0; i < list.length; ++i) {
      if (list[i].listener !== listener) continue;
      list[i].removed = true;
      arrayRemoveAt(list, i);
      return;
    }
  }
  dispatchEvent(event) {
    if (!isEvent(event)) throw atCaller(new NativeTypeError('The "event" argument must be an instance of Event'), this.dispatchEvent);
    eventBegin(event, this);
    const list = mapGet(this.#listeners, event.type);
    if (list !== undefined) {
      const current = arraySlice(list);
      for (let i = 0; i < current.length && !eventStopped(event); ++i) {
        const entry = current[i];
        if (entry.removed) continue;
        if (entry.once) this.removeEventListener(event.type, entry.listener);
        try {
          if (typeof entry.listener === 'function') reflectApply(entry.listener, this, [event]);
          else entry.listener.handleEvent(event);
        } catch (error) {
          nextTick(() => { throw error; });  // a listener's failure is the run's, not the dispatcher's
        }
      }
    }
    eventEnd(event);
    return !event.defaultPrevented;
  }
}
put(EventTarget.prototype, symbolToStringTag, 'EventTarget', false);

/// An `on…` property: a listener that takes part in the order of the others.
function eventHandler(prototype, type) {
  const handlers = new NativeWeakMap();
  defineProperty(prototype, `on${type}`, {
    __proto__: null, enumerable: true, configurable: true,
    get() { return weakMapGet(handlers, this)?.fn ?? null; },
    set(fn) {
      let entry = weakMapGet(handlers, this);
      if (entry === undefined) {
        entry = { __proto__: null, fn: null };
        weakMapSet(handlers, this, entry);
        this.addEventListener(type, (event) => { if (typeof entry.fn === 'function') reflectApply(entry.fn, this, [event]); });
      }
      entry.fn = fn;
    },
  });
}

let makingSignal = false;
class AbortSignal extends EventTarget {
  #aborted = false; #reason = undefined;
  constructor() {
    if (!makingSignal) throw atCaller(new NativeTypeError('Illegal constructor'), AbortSignal);
    super();
  }
  get aborted() { return this.#aborted; }
  get reason() { return this.#reason; }
  throwIfAborted() { if (this.#aborted) throw this.#reason; }
  static abort(reason) { const signal = newSignal(); abortSignal(signal, reason); return signal; }
  static timeout(ms) {
    const signal = newSignal();
    setTimeout(() => abortSignal(signal, new NativeDOMException('The operation was aborted due to timeout', 'TimeoutError')), ms);
    return signal;
  }
  static any(signals) {
    const joined = newSignal(), list = arrayFrom(signals);
    for (let i = 0; i < list.length; ++i) {
      if (list[i].aborted) { abortSignal(joined, list[i].reason); return joined; }
    }
    for (let i = 0; i < list.length; ++i) list[i].addEventListener('abort', () => abortSignal(joined, list[i].reason), { once: true });
    return joined;
  }
  static _abort(signal, reason) {
    if (signal.#aborted) return;
    signal.#aborted = true;
    signal.#reason = reason === undefined ? new NativeDOMException('This operation was aborted', 'AbortError') : reason;
    signal.dispatchEvent(new Event('abort'));
  }
}
const abortSignal = AbortSignal._abort;
delete AbortSignal._abort;
function newSignal() {
  makingSignal = true;
  try { return new AbortSignal(); } finally { makingSignal = false; }
}
eventHandler(AbortSignal.prototype, 'abort');
put(AbortSignal.prototype, symbolToStringTag, 'AbortSignal', false);

class AbortController {
  #signal = newSignal();
  get signal() { return this.#signal; }
  abort(reason) { abortSignal(this.#signal, reason); }
}
put(AbortController.prototype, symbolToStringTag, 'AbortController', false);
