// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Streams of few words over files and the standard streams: events, pipe, for await. What they read is read whole and
// given out in chunks; what they write is written at once.

const kChunkBytes = 65536;

class ReadStream extends EventEmitter {
  #source; #encoding; #chunks; #started = false; #paused = false; #decoder;
  constructor(source, options) {
    super();
    this.#source = options?.fd ?? source;
    put(this, 'path', source, typeof source === 'string');
    put(this, 'fd', options?.fd ?? null);
    put(this, 'isTTY', false);
    put(this, 'readable', true);
    const encoding = typeof options === 'string' ? options : options?.encoding;
    if (encoding !== undefined && encoding !== null) this.setEncoding(encoding);
  }
  #take() {
    if (this.#chunks === undefined) {
      const bytes = fs.readFileSync(this.#source);
      this.#chunks = [];
      for (let at = 0; at < bytes.length; at += kChunkBytes) arrayPush(this.#chunks, bytes.subarray(at, at + kChunkBytes));
    }
    if (this.#chunks.length === 0) return null;
    const chunk = arrayShift(this.#chunks);
    return this.#encoding === undefined ? chunk : this.#decoder.write(chunk);
  }
  #flow() {
    if (this.#started || this.#paused) return;
    this.#started = true;
    setImmediate(() => this.#step());
  }
  #step() {
    if (this.#paused) { this.#started = false; return; }
    let chunk;
    try {
      chunk = this.#take();
    } catch (error) {
      this.emit('error', error);
      this.emit('close');
      return;
    }
    if (chunk === null) {
      this.emit('end');
      this.emit('close');
    } else {
      this.emit('data', chunk);
      setImmediate(() => this.#step());
    }
  }
  on(event, listener) {
    super.on(event, listener);
    if (event === 'data' || event === 'end' || event === 'readable') this.#flow();
    return this;
  }
  addListener(event, listener) { return this.on(event, listener); }
  once(event, listener) {
    super.once(event, listener);
    if (event === 'data' || event === 'end' || event === 'readable') this.#flow();
    return this;
  }
  setEncoding(name) {
    this.#encoding = normalEncoding(name, this.setEncoding);
    this.#decoder = new StringDecoder(this.#encoding);
    return this;
  }
  read() { return this.#take(); }
  pause() { this.#paused = true; return this; }
  resume() { this.#paused = false; this.#flow(); return this; }
  isPaused() { return this.#paused; }
  unref() { return this; }
  ref() { return this; }
  setRawMode() { return this; }
  close(done) { this.#chunks = []; if (typeof done === 'function') setImmediate(done); }
  destroy() { this.#chunks = []; return this; }
  pipe(target) {
    this.on('data', (chunk) => target.write(chunk));
    if (target !== processObject.stdout && target !== processObject.stderr) this.on('end', () => target.end());
    return target;
  }
  async* [symbolAsyncIterator]() {
    for (let chunk = this.#take(); chunk !== null; chunk = this.#take()) yield chunk;
  }
  /// Everything that is left, as text; for readline.
  static _rest(stream) {
    let text = '';
    const decoder = new StringDecoder('utf8');
    for (let chunk = stream.#take(); chunk !== null; chunk = stream.#take()) text += decoder.write(chunk);
    return text + decoder.end();
  }
  static _is(value) { return isObject(value) && #source in value; }
}
const { _rest: restOfStream, _is: isReadStream } = ReadStream;
delete ReadStream._rest;
delete ReadStream._is;

class WriteStream extends EventEmitter {
  #fd; #ended = false; #owned;
  constructor(path, options) {
    super();
    this.#owned = options?.fd === undefined;
    this.#fd = options?.fd ?? fs.openSync(path, (isObject(options) ? options.flags : undefined) ?? 'w');
    put(this, 'path', path, this.#owned);
    put(this, 'fd', this.#fd);
    put(this, 'isTTY', false);
    put(this, 'writable', true);
    put(this, 'bytesWritten', 0);
  }
  write(chunk, encoding, done) {
    const callback = typeof encoding === 'function' ? encoding : done;
    if (this.#ended && this.#owned) throw typeError('ERR_STREAM_WRITE_AFTER_END', 'write after end', this.write);
    const isText = typeof chunk === 'string', utf8 = typeof encoding !== 'string' || normalEncoding(encoding) === 'utf8';
    if (isText && utf8 && !this.#owned) {
      host.write(this.#fd, chunk);
    } else {
      const bytes = isText ? encodeText(chunk, utf8 ? 'utf8' : encoding) : bytesOf(chunk);
      if (bytes === null) {
        throw typeError('ERR_INVALID_ARG_TYPE',
          `The "chunk" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${received(chunk)}`, this.write);
      }
      if (this.#owned) this.bytesWritten += fs.writeSync(this.#fd, bytes);
      else host.writeBytes(this.#fd, typedArrayBuffer(bytes), typedArrayByteOffset(bytes), typedArrayLength(bytes));
    }
    if (typeof callback === 'function') nextTick(callback);
    return true;
  }
  end(chunk, encoding, done) {
    if (chunk !== undefined && chunk !== null && typeof chunk !== 'function') this.write(chunk, typeof encoding === 'string' ? encoding : undefined);
    const callback = typeof chunk === 'function' ? chunk : typeof encoding === 'function' ? encoding : done;
    if (typeof callback === 'function') this.once('finish', callback);
    if (this.#owned && !this.#ended) {
      this.#ended = true;
      fs.closeSync(this.#fd);
      setImmediate(() => { this.emit('finish'); this.emit('close'); });
    }
    return this;
  }
  close(done) { return this.end(done); }
  destroy() { return this.end(); }
  cork() {}
  uncork() {}
  getColorDepth() { return 1; }
  hasColors() { return false; }
}
method(fs, 'createReadStream', function createReadStream(path, options) {
  return new ReadStream(checkPath(path, 'path', createReadStream), options);
});
method(fs, 'createWriteStream', function createWriteStream(path, options) {
  return new WriteStream(checkPath(path, 'path', createWriteStream), options);
});
