// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Is process.env.SOURCE a whole cell, or does it want more lines? Its value is the answer. The code is only parsed:
// as the body of a function that nobody calls. What wants more fails behind its own last line. What is no JavaScript
// may be TypeScript.
(() => {
  const isWhole = (source) => {
    const lines = source.split('\n');
    try {
      (0, eval)(`(async () => {\n${source}\n});`);
      return true;
    } catch (error) {
      if (!(error instanceof SyntaxError)) return true;
      if (error.message.includes('end of comment')) return false;
      const place = /<input>:(\d+):(\d+)/.exec(error.stack);
      if (place === null) return true;
      const line = Number(place[1]) - 2;
      if (line >= lines.length) return error.message.startsWith('missing initializer');
      const isTemplate = lines[line][Number(place[2]) - 1] === '`';
      return isTemplate && error.message.includes('end of string') ? false : undefined;
    }
  };
  const source = process.env.SOURCE, answer = isWhole(source);
  if (answer !== undefined) return answer;
  try {
    return isWhole(require('node:module').stripTypeScriptTypes(source)) ?? true;
  } catch (error) {
    return !error.isIncomplete;
  }
})()
