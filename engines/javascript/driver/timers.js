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
const liveTimers = new NativeMap();  // id -> entry of the heap
let nextTimerId = 1, timerOrder = 0;
// What is queued while one round runs is the next round.
let immediates = [], immediatesRound = [], immediatesAt = 0, ticks = [], ticksRound = [], ticksAt = 0;

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

/// What programs hold. All that the loop goes by is private: it must not run what a program puts there.
class Timeout {
  #id = nextTimerId++;
  constructor(callback, delay, args, repeats) {
    delay = +delay;
    if (!(delay >= 1 && delay <= 2147483647)) delay = 1;
    startTimer({ __proto__: null, timer: this, id: this.#id, callback, args, delay: mathTrunc(delay), repeats, due: 0, order: 0 });
  }
  ref() { return this; }
  unref() { return this; }
  hasRef() { return true; }
  refresh() {
    // The heap orders by due time: the old entry is left to surface dead, and a copy takes over.
    const entry = mapGet(liveTimers, this.#id);
    if (entry !== undefined) startTimer({ __proto__: null, ...entry });
    return this;
  }
  close() { clearTimer(this); return this; }
  [NativeSymbol.toPrimitive]() { return this.#id; }
  static _id(handle) { return #id in handle ? handle.#id : undefined; }
}
const timerIdOf = Timeout._id;
delete Timeout._id;

function startTimer(entry) {
  entry.due = host.now() + entry.delay;
  entry.order = timerOrder++;
  mapSet(liveTimers, entry.id, entry);
  heapPush(entry);
  host.arm(kArmTimers);
}

function clearTimer(handle) {
  if (!isObject(handle)) {
    if (typeof handle === 'number' || typeof handle === 'string') mapDelete(liveTimers, +handle);
  } else if (!cancelImmediate(handle)) {
    mapDelete(liveTimers, timerIdOf(handle));
  }
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

class Immediate {
  #entry;
  constructor(callback, args) {
    this.#entry = { __proto__: null, callback, args, cancelled: false };
    arrayPush(immediates, this.#entry);
    host.arm(kArmTimers);
  }
  ref() { return this; }
  unref() { return this; }
  hasRef() { return true; }
  static _cancel(handle) {
    if (!(#entry in handle)) return false;
    handle.#entry.cancelled = true;
    return true;
  }
}
const cancelImmediate = Immediate._cancel;
delete Immediate._cancel;

function setImmediate(callback, ...args) {
  checkCallback(callback, setImmediate);
  return new Immediate(callback, args);
}

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
  try {
    for (;;) {
      if (ticksAt === ticksRound.length) {
        ticksRound = ticks;
        ticksAt = 0;
        ticks = [];
        if (ticksRound.length === 0) return;
      }
      const tick = ticksRound[ticksAt++];
      reflectApply(tick.callback, undefined, tick.args);
    }
  } finally {
    if (ticksAt < ticksRound.length) host.arm(kArmTicks);  // one of them threw
  }
}

function nextImmediate() {
  if (immediatesAt === immediatesRound.length) {
    immediatesRound = immediates;
    immediatesAt = 0;
    immediates = [];
  }
  return immediatesAt < immediatesRound.length ? immediatesRound[immediatesAt++] : undefined;
}

/// Runs one due timer, or one immediate. Returns -1 when nothing is pending any more, else the milliseconds until there
/// is something to do.
function runTimers() {
  while (timerHeap.length > 0) {
    const entry = timerHeap[0];
    if (mapGet(liveTimers, entry.id) !== entry) { heapPop(); continue; }
    const wait = entry.due - host.now();
    if (wait > 0) {
      if (immediates.length > 0 || immediatesAt < immediatesRound.length) break;
      return wait;
    }
    heapPop();
    if (entry.repeats) startTimer(entry);
    else mapDelete(liveTimers, entry.id);
    reflectApply(entry.callback, entry.timer, entry.args);
    return 0;
  }
  const immediate = nextImmediate();
  if (immediate === undefined) return -1;
  if (!immediate.cancelled) reflectApply(immediate.callback, undefined, immediate.args);
  return 0;
}

/// Forgets everything that waits: the run that armed it was ended. Needs no memory, of which there may be none.
function dropTimers() {
  timerHeap.length = 0;
  mapClear(liveTimers);
  immediates.length = immediatesRound.length = immediatesAt = 0;
  ticks.length = ticksRound.length = ticksAt = 0;
}
