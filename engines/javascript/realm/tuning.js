// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// What an optimizing engine does for sucrase's parser, done to its text when it is loaded: an interpreter pays for each
// property of an enum and for each call of a function of one comparison. Each change must be found, or the bake fails.

const folder = '/usr/share/javascript/sucrase/dist/esm/parser/';
const numbers = { __proto__: null, tt: {}, charCodes: {}, ContextualKeyword: {} };

/// Collects `const name = 12; Enum[Enum["name"] = name]` and `const name = other + 1; …`.
function learnEnum(target, source, name) {
  const pattern = new RegExp(`const (\\w+) = ([^;]+); ${name}\\[${name}\\["\\1"\\] = \\1\\]`, 'g');
  for (const [, key, value] of source.matchAll(pattern)) {
    const sum = /^(\w+) \+ 1$/.exec(value);
    target[key] = sum === null ? Number(value) : target[sum[1]] + 1;
    if (!Number.isInteger(target[key])) delete target[key];  // flags, which are seldom used
  }
  if (Object.keys(target).length < 30) throw new Error(`sucrase's ${name} is not what it was`);
}

function replaceOnce(source, from, to) {
  if (!source.includes(from)) throw new Error(`sucrase's parser has no '${from}'`);
  return source.replace(from, to);
}

/// Where the parser takes what is right for wrong.
const corrections = {
  __proto__: null,
  'plugins/typescript.js': [
    // The body of a namespace is code, in which >= is one token. Who declares one wants it to be of types as a whole.
    [`function tsParseModuleBlock() {
  expect(tt.braceL);
  parseBlockBody(/* end */ tt.braceR);
}`, `function tsParseModuleBlock() {
  const isType = state.isType, first = state.tokens.length;
  state.isType = false;
  expect(tt.braceL);
  parseBlockBody(tt.braceR);
  state.isType = isType;
  if (isType) for (let i = first; i < state.tokens.length; ++i) state.tokens[i].isType = true;
}`],
  ],
  // In `a ? (b) : c => d` the colon gives no type. What begins where the middle of a conditional does, and is no arrow
  // function with a colon behind it, is none with a type.
  'traverser/expression.js': [
    [`  if (eat(tt.question)) {
    parseMaybeAssign();
    expect(tt.colon);`, `  if (eat(tt.question)) {
    state.middleAt = state.start;
    parseMaybeAssign();
    expect(tt.colon);`],
    ['  const canBeArrow = state.potentialArrowAt === state.start;\n', '  const canBeArrow = state.potentialArrowAt === state.start, isMiddle = state.middleAt === state.start;\n'],
    [`    markPriorBindingIdentifier(false);
        expect(tt.arrow);`, `    markPriorBindingIdentifier(false);
        expect(tt.arrow);
        if (isMiddle) state.middleAt = state.start;`],
    ['function parseParenAndDistinguishExpression(canBeArrow) {', 'function parseParenAndDistinguishExpression(canBeArrow) {\n  const isMiddle = state.middleAt === state.start;'],
    [`      parseFunctionParams();
      parseArrow();
      parseArrowExpression(startTokenIndex);
      if (state.error) {`, `      parseFunctionParams();
      const hasType = match(tt.colon);
      parseArrow();
      if (isMiddle) state.middleAt = state.start;
      parseArrowExpression(startTokenIndex);
      if (state.error || (isMiddle && hasType && !match(tt.colon))) {`],
  ],
};

const unusedFields = /\n {4}this\.(?:jsxRole|shadowsGlobal|isAsyncOperation|numNullishCoalesce\w+|isOptionalChain\w+|subscriptStartIndex|nullishStartIndex) = (?:null|false|0);/g;

/// The text of the library module `path` as it is to be compiled. The modules with the enums come before those that use
/// them: typescript.js imports them first.
globalThis.tuneModule = (path, source) => {
  if (!path.startsWith(folder)) return source;
  if (path.endsWith('/tokenizer/types.js')) learnEnum(numbers.tt, source, 'TokenType');
  if (path.endsWith('/tokenizer/keywords.js')) learnEnum(numbers.ContextualKeyword, source, 'ContextualKeyword');
  if (path.endsWith('/util/charcodes.js')) learnEnum(numbers.charCodes, source, 'charCodes');
  if (path.endsWith('.js') && Object.keys(numbers.tt).length === 0) throw new Error(`${path} is loaded before sucrase's enums`);
  let corrected = source;
  for (const [from, to] of corrections[path.slice(folder.length)] ?? []) corrected = replaceOnce(corrected, from, to);
  let text = corrected.replace(/\b(tt|charCodes|ContextualKeyword)\.(\w+)/g, (all, name, key) => numbers[name][key] ?? all);
  const imports = (name) => new RegExp(`import \\{[^}]*\\b${name}\\b[^}]*\\} from`).test(source);
  if (imports('match') || path.endsWith('/tokenizer/index.js')) {
    text = text.replace(/(?<!function )\bmatch\((\d+)\)/g, '(state.type === $1)');
    if (imports('next') || path.endsWith('/tokenizer/index.js')) text = text.replace(/(?<!function )\beat\((\d+)\)/g, '(state.type === $1 && (next(), true))');
    if (!imports('state')) text = `import { state } from '${folder}traverser/base.js';${text}`;
  }
  text = text.replaceAll('state.tokens[state.tokens.length - 1].subscriptStartIndex = startTokenIndex;', '');
  if (path.endsWith('/tokenizer/index.js')) {
    text = text.replace(unusedFields, '');
    if (text.includes('nullishStartIndex')) throw new Error("sucrase's tokens are not what they were");
    // Most tokens follow each other, or after one blank.
    text = replaceOnce(text, 'const ch = input.charCodeAt(state.pos);', 'const ch = input.charCodeAt(state.pos);\n    if (ch > 32 && ch < 160 && ch !== 47) return;\n    if (ch === 32) { ++state.pos; continue; }');
  }
  return text;
};
