// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Timers, immediates and process.nextTick. The host runs the loop: it drains promise jobs, calls runTicks, and
// when nothing else is left calls runTimers, which runs what is due and says how long to sleep.
//
// host.arm(kind) tells the host that there is something to call back for; a run that uses no timers never
// comes here.

const kArmTimers = 1, kArmTicks = 2;

// A binary heap ordered by due time, then by age. Timers that were cancelled stay in it until they surface.
const timerHeap = [];
const liveTimers = new NativeMap();  // id -> timer
let nextTimerId = 1;
let immediates = [], ticks = [];

function isEarlier(a, b) {
  return a.due < b.due || (a.due === b.due && a.order < b.order);
}

function heapPush(timer) {
  let at = timerHeap.length;
  arrayPush(timerHeap, timer);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (!isEarlier(timer, timerHeap[parent])) break;
    timerHeap[at] = timerHeap[parent];
    at = parent;
  }
  timerHeap[at] = timer;
}

function heapPop() {
  const top = timerHeap[0], last = arrayPop(timerHeap), size = timerHeap.length;
  if (size === 0) return top;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && isEarlier(timerHeap[child + 1], timerHeap[child])) ++child;
    if (!isEarlier(timerHeap[child], last)) break;
    timerHeap[at] = timerHeap[child];
    at = child;
  }
  timerHeap[at] = last;
  return top;
}

let timerOrder = 0;

class Timeout {
  constructor(callback, delay, args, repeats) {
    delay = +delay;
    if (!(delay >= 1 && delay <= 2147483647)) delay = 1;
    put(this, 'id', nextTimerId++, false);
    put(this, 'callback', callback, false);
    put(this, 'args', args, false);
    put(this, 'delay', mathTrunc(delay), false);
    put(this, 'repeats', repeats, false);
    put(this, 'live', false, false);
    put(this, 'due', 0, false);
    put(this, 'order', 0, false);
    startTimer(this);
  }
  ref() { return this; }
  unref() { return this; }
  hasRef() { return true; }
  refresh() {
    if (this.live) {
      // The heap orders by due time: the old entry is left to surface dead, and a copy takes over.
      mapSet(liveTimers, this.id, undefined);
      startTimer(this);
    }
    return this;
  }
  close() { clearTimer(this); return this; }
  [NativeSymbol.toPrimitive]() { return this.id; }
}

function startTimer(timer) {
  const entry = { __proto__: null, timer, due: host.now() + timer.delay, order: timerOrder++ };
  timer.live = true;
  mapSet(liveTimers, timer.id, entry);
  heapPush(entry);
  host.arm(kArmTimers);
}

function clearTimer(handle) {
  if (handle === null || handle === undefined) return;
  if (typeof handle === 'object' && kindOf(handle) === 'Object' && hasOwn(handle, 'immediate')) {
    handle.immediate.cancelled = true;
    return;
  }
  const id = typeof handle === 'object' ? (hasOwn(handle, 'id') ? handle.id : undefined) : +handle;
  const entry = mapGet(liveTimers, id);
  if (entry === undefined) return;
  entry.timer.live = false;
  mapDelete(liveTimers, id);
}

function checkCallback(callback, boundary) {
  if (typeof callback !== 'function') {
    throw typeError('ERR_INVALID_ARG_TYPE', `The "callback" argument must be of type function. Received ${received(callback)}`, boundary);
  }
}

/// How an unwanted argument is named in a message: `undefined`, `type number (5)`, `an instance of Map`.
function received(value) {
  if (value === undefined || value === null) return `${value}`;
  if (typeof value === 'function') return `function ${functionName(value)}`;
  if (typeof value === 'object') {
    const name = kindOf(value) === 'Proxy' ? null : constructorName(value);
    return name !== null ? `an instance of ${name}` : inspect(value, { depth: -1 });
  }
  let text = inspect(value, { colors: false });
  if (text.length > 28) text = `${stringSlice(text, 0, 25)}...`;
  return `type ${typeof value} (${text})`;
}

function setTimeout(callback, delay, ...args) {
  checkCallback(callback, setTimeout);
  return new Timeout(callback, delay, args, false);
}

function setInterval(callback, delay, ...args) {
  checkCallback(callback, setInterval);
  return new Timeout(callback, delay, args, true);
}

function setImmediate(callback, ...args) {
  checkCallback(callback, setImmediate);
  const immediate = { __proto__: null, callback, args, cancelled: false };
  arrayPush(immediates, immediate);
  host.arm(kArmTimers);
  const handle = objectCreate(immediatePrototype);
  put(handle, 'immediate', immediate, false);
  return handle;
}
class Immediate {
  ref() { return this; }
  unref() { return this; }
  hasRef() { return true; }
}
const immediatePrototype = Immediate.prototype;

function clearTimeout(handle) { clearTimer(handle); }
function clearInterval(handle) { clearTimer(handle); }
function clearImmediate(handle) { clearTimer(handle); }

function nextTick(callback, ...args) {
  checkCallback(callback, nextTick);
  arrayPush(ticks, { __proto__: null, callback, args });
  host.arm(kArmTicks);
}

/// Runs the queue of process.nextTick. The host drains promise jobs afterwards and asks again.
function runTicks() {
  while (ticks.length > 0) {
    const queue = ticks;
    ticks = [];
    for (let i = 0; i < queue.length; ++i) reflectApply(queue[i].callback, undefined, queue[i].args);
  }
}

/// Runs one due timer, or one round of immediates. Returns -1 when nothing is pending any more, else the
/// milliseconds until there is something to do.
function runTimers() {
  while (timerHeap.length > 0) {
    const entry = timerHeap[0], timer = entry.timer;
    if (mapGet(liveTimers, timer.id) !== entry) { heapPop(); continue; }
    const wait = entry.due - host.now();
    if (wait > 0) {
      if (immediates.length > 0) break;
      return wait;
    }
    heapPop();
    if (timer.repeats) {
      startTimer(timer);
    } else {
      timer.live = false;
      mapDelete(liveTimers, timer.id);
    }
    reflectApply(timer.callback, timer, timer.args);
    return 0;
  }
  if (immediates.length > 0) {
    const immediate = arrayShift(immediates);
    if (!immediate.cancelled) reflectApply(immediate.callback, undefined, immediate.args);
    return 0;
  }
  return -1;
}

/// Forgets everything that waits: the run that armed it was ended.
function dropTimers() {
  timerHeap.length = 0;
  mapForEach(liveTimers, (entry) => { if (entry !== undefined) entry.timer.live = false; });
  const ids = [];
  mapForEach(liveTimers, (_, id) => arrayPush(ids, id));
  for (let i = 0; i < ids.length; ++i) mapDelete(liveTimers, ids[i]);
  immediates = [];
  ticks = [];
}
