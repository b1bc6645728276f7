// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// TypeScript to JavaScript, in the driver's own realm. sucrase's parser finds the tokens and says which belong to types;
// what is emitted is ours: types become blanks, so lines and columns stay the user's, and the few constructs that
// are code (enums, namespaces, parameter properties, `import x = …`) are written out on the lines they stand on.

// The enums first: tuning.js writes their numbers into the modules after them.
import { TokenType as tt } from 'sucrase/dist/esm/parser/tokenizer/types';
import { ContextualKeyword as word } from 'sucrase/dist/esm/parser/tokenizer/keywords';
import 'sucrase/dist/esm/parser/util/charcodes';
import { initParser } from 'sucrase/dist/esm/parser/traverser/base';
import { parse } from 'sucrase/dist/esm/parser/index';
import { IdentifierRole, isTopLevelDeclaration } from 'sucrase/dist/esm/parser/tokenizer/index';

/// What the emitter has to look at, by token type; all else is copied. A type's number is its index, then ten flags.
const special = new Uint8Array(256);
for (const type of [
  tt._public, tt._protected, tt._private, tt._abstract, tt._readonly, tt._override, tt._declare, tt.nonNullAssertion,
  tt._enum, tt._const, tt._class, tt._import, tt._export, tt.parenR, tt.at, tt.braceL, tt.dollarBraceL, tt.braceR,
  tt.name, tt._function, tt.semi, tt._static,
]) special[type >> 10] = 1;

const memberModifiers = new Set([
  tt._public, tt._protected, tt._private, tt._abstract, tt._readonly, tt._override, tt._declare, tt._static,
]);
const parameterModifiers = new Set([tt._public, tt._protected, tt._private, tt._readonly, tt._override]);
/// Behind these a function is a statement of its own.
const statementEnds = new Set([tt.braceL, tt.braceR, tt.semi, tt.parenR, tt._export]);
/// What may follow the type of a field or variable whose name means something else before another name.
const typeEnds = new Set([tt.eq, tt.semi, tt.comma, tt.parenL, tt.parenR, tt.bracketR, tt.braceL, tt.braceR, tt.arrow, tt.eof]);

const reserved = new Set(
  ('await break case catch class const continue debugger default delete do else enum export extends false finally for function if '
    + 'implements import in instanceof interface let new null package private protected public return static super switch this '
    + 'throw true try typeof var void while with yield arguments eval').split(' '));
const identifier = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;
const lineEnd = /[\r\n\u2028\u2029]/;
const notLineEnd = /[^\r\n\u2028\u2029]/g;

const isTypeWord = (token) => {
  switch (token.contextualKeyword) {
    case word._interface: case word._type: case word._declare: case word._namespace: case word._module: return true;
    default: return token.type === tt._export || token.type === tt._import || token.type === tt._function;
  }
};

const noDecorators = 'decorators are not supported here; call the function instead: x = decorate(x)';

class Unsupported extends Error {
  constructor(message, position) {
    super(message);
    this.position = position;
  }
}

class Emitter {
  #code; #tokens; #out = ''; #at = 0;
  #lineEnd = -1;          // the next one, as of the last look
  #hasRareLineEnds;       // others than \n
  #namespace;             // the name of the namespace whose body this is, or ''
  #isModule;              // an ES module of its own: imports that only types use are left out
  #isCell;                // its import declarations are written as `await import(…)`
  #inserts = new Map();   // text to put after a token, by its index
  #declared = [new Map()];  // per block: names that enums and namespaces may add to, and as what they were declared
  #members = new Map();   // those of the enums that may be added to, by block and name
  #values = null; #imported = new Set(); #exported = new Set();
  #empty = new Set();     // namespaces that are nothing but types
  hasValues = false;

  constructor(code, kind, namespace) {
    this.#code = code;
    this.#hasRareLineEnds = /[\r\u2028\u2029]/.test(code);
    this.#tokens = parse(code, false, true, false).tokens;
    this.#isModule = kind === 'module';
    this.#isCell = kind === 'cell';
    this.#namespace = namespace;
  }

  /// What the namespace is called within its body, where a declaration may hide its name.
  nameInside() {
    let name = this.#namespace;
    const tokens = this.#tokens, words = new Set();
    let isHidden = false;
    for (let i = 0; i < tokens.length; ++i) {
      if (tokens[i].type !== tt.name) continue;
      const text = this.#text(i);
      words.add(text);
      if (text === name && this.#isDeclaredAt(i)) isHidden = true;
    }
    if (isHidden) do name = `_${name}`; while (words.has(name));
    return this.#namespace = name;
  }
  #isDeclaredAt(index) {
    const token = this.#tokens[index], before = this.#tokens[index - 1];
    if (isTopLevelDeclaration(token) || token.identifierRole === IdentifierRole.ImportDeclaration) return true;
    return before !== undefined && (before.type === tt._enum || (before.type === tt.name && before.isType &&
      (before.contextualKeyword === word._namespace || before.contextualKeyword === word._module)));
  }

  emit() {
    const end = this.#tokens.length - 1;  // the last token is the end of the file
    this.#range(0, end);
    return this.#out + this.#code.slice(this.#at);
  }

  // ---- pieces ----

  #text(index) { return this.#code.slice(this.#tokens[index].start, this.#tokens[index].end); }
  #copyTo(position) {
    this.#out += this.#code.slice(this.#at, position);
    this.#at = position;
  }
  /// Blanks up to `position`, the first of them `first`, the last `last`.
  #blankTo(position, first = '', last = '') {
    const from = this.#at + first.length, to = position - last.length;
    if (this.#lineEnd < from) this.#lineEnd = this.#nextLineEnd(from);
    const blanks = this.#lineEnd >= to ? ' '.repeat(to - from) : this.#code.slice(from, to).replace(notLineEnd, ' ');
    this.#out += first + blanks + last;
    this.#at = position;
  }
  #nextLineEnd(from) {
    if (this.#hasRareLineEnds) return from;
    const at = this.#code.indexOf('\n', from);
    return at < 0 ? this.#code.length : at;
  }
  #blankToken(index) {
    this.#copyTo(this.#tokens[index].start);
    this.#blankTo(this.#tokens[index].end);
  }
  #hasLineEnd(from, to) { return lineEnd.test(this.#code.slice(from, to)); }
  #endOfTypes(index) {
    while (this.#tokens[index].isType) ++index;
    return index;
  }
  /// The index behind the bracket that closes the one at `index`.
  #behindBrackets(index) {
    let depth = 0;
    for (; index < this.#tokens.length; ++index) {
      switch (this.#tokens[index].type) {
        case tt.parenL: case tt.bracketL: case tt.braceL: case tt.dollarBraceL: ++depth; break;
        case tt.parenR: case tt.bracketR: case tt.braceR: if (--depth === 0) return index + 1; break;
      }
    }
    return index;
  }

  // ---- the loop ----

  #range(index, end) {
    const tokens = this.#tokens, inserts = this.#inserts, types = special;
    while (index < end) {
      const token = tokens[index];
      if (token.isType) {
        index = this.#types(index, end);
      } else if (types[token.type >> 10] === 0) {
        this.hasValues = true;
        ++index;
      } else {
        const next = this.#special(index, token);
        if (next === index + 1 && inserts.size > 0 && inserts.has(index)) {
          this.#copyTo(token.end);
          this.#out += inserts.get(index);
        }
        index = next;
      }
    }
  }

  #special(index, token) {
    const tokens = this.#tokens, next = tokens[index + 1];
    if (token.type !== tt.braceR && token.type !== tt.semi) this.hasValues = true;
    switch (token.type) {
      case tt._public: case tt._protected: case tt._private: case tt._readonly: case tt._override:
        return this.#modifier(index);
      case tt.nonNullAssertion:
        this.#blankToken(index);
        return index + 1;
      case tt._abstract: case tt._declare:
        return this.#abstractMember(index);
      case tt._static:
        return next.type === tt._declare || next.type === tt._abstract ? this.#abstractMember(index) : index + 1;
      case tt._enum:
        return this.#enum(index, index, '');
      case tt._const:
        return next.type === tt._enum ? this.#enum(index, index + 1, '') : index + 1;
      case tt._class:
        return this.#class(index);
      case tt._function:
        if (next.type === tt.name && !next.isType && this.#isStatement(index)) this.#declare(this.#text(index + 1), 'function');
        return index + 1;
      case tt._import:
        return this.#import(index);
      case tt._export:
        return this.#export(index);
      case tt.braceL: case tt.dollarBraceL:
        this.#declared.push(new Map());
        return index + 1;
      case tt.braceR:
        if (this.#declared.length > 1) this.#declared.pop();
        return index + 1;
      case tt.parenR:
        return next.isType && next.type === tt.colon ? this.#arrowType(index) : index + 1;
      case tt.name:
        return next.isType && next.type === tt.lessThan && token.contextualKeyword === word._async ? this.#asyncGeneric(index) : index + 1;
      case tt.at:
        throw new Unsupported(noDecorators, token.start);
      default:
        return index + 1;
    }
  }

  #isStatement(index) {
    const tokens = this.#tokens, before = tokens[index - 1];
    return isTopLevelDeclaration(tokens[index + 1]) || before === undefined || before.isType || statementEnds.has(before.type);
  }
  #declare(name, kind) {
    const block = this.#declared[this.#declared.length - 1], before = block.get(name);
    block.set(name, kind);
    return before;
  }

  // ---- types ----

  /// A run of tokens that belong to types, with the namespaces in it, which are code.
  #types(index, end) {
    const tokens = this.#tokens;
    const stop = Math.min(this.#endOfTypes(index), end);
    this.#copyTo(tokens[index].start);
    let isStatement = isTypeWord(tokens[index]);
    for (let at = index; at < stop;) {
      const token = tokens[at];
      if (token.contextualKeyword === word._declare && tokens[at + 1].contextualKeyword !== word._declare) {
        // Nothing of what it declares is code: on behind its name, and braces if any.
        for (++at; at < stop && tokens[at].type !== tt.braceL && tokens[at].type !== tt.semi; ++at);
        if (at < stop && tokens[at].type === tt.braceL) at = this.#behindBrackets(at);
      } else if (token.type === tt.braceL || token.type === tt.parenL || token.type === tt.bracketL) {
        at = this.#behindBrackets(at);
      } else if ((token.contextualKeyword === word._namespace || token.contextualKeyword === word._module) && token.type === tt.name &&
                 this.#isNamespace(at)) {
        const isExported = at > 0 && tokens[at - 1].type === tt._export;
        if (at > index) this.#blankTo(tokens[isExported ? at - 1 : at].start, isStatement && at - (isExported ? 1 : 0) > index ? ';' : '');
        at = this.#namespaceDeclaration(at, isExported);
        isStatement = false;
      } else {
        ++at;
      }
    }
    const last = tokens[stop - 1].end;
    if (this.#at >= last) return stop;
    const next = this.#code[tokens[stop].start];
    if (index > 0 && this.#at === tokens[index].start) {
      const before = tokens[index - 1];
      if ((before.type === tt._return || before.type === tt._throw || before.type === tt._yield) && this.#hasLineEnd(before.end, tokens[stop].start)) {
        // JavaScript's statement would end with the line.
        if (tokens[stop].type === tt.parenL) {
          this.#blankTo(tokens[stop].end, '(');
          return stop + 1;
        }
        this.#blankTo(last, '0,');
        return stop;
      }
      const name = tokens[index].type === tt.colon || tokens[index].type === tt.question || tokens[index].type === tt.bang ? this.#text(index - 1) : '';
      if ((name === 'get' || name === 'set' || name === 'static') && !typeEnds.has(tokens[stop].type)) {
        this.#blankTo(last, ';');
        return stop;
      }
    }
    const isCast = tokens[index].contextualKeyword === word._as || tokens[index].contextualKeyword === word._satisfies;
    const joins = isCast && (next === '(' || next === '[' || next === '`') && this.#hasLineEnd(last, tokens[stop].start);
    this.#blankTo(last, isStatement ? ';' : '', joins ? ';' : '');
    return stop;
  }

  /// Return types may stand on several lines, but `)` and `=>` only on one.
  #arrowType(index) {
    const tokens = this.#tokens, stop = this.#endOfTypes(index + 1);
    if (tokens[stop].type !== tt.arrow || !this.#hasLineEnd(tokens[index].end, tokens[stop].start)) return index + 1;
    this.#copyTo(tokens[index].start);
    this.#blankTo(tokens[stop].start, '', ')');
    return stop;
  }

  #asyncGeneric(index) {
    const tokens = this.#tokens, stop = this.#endOfTypes(index + 1);
    if (tokens[stop].type !== tt.parenL || !this.#hasLineEnd(tokens[index].end, tokens[stop].start)) return index + 1;
    this.#copyTo(tokens[index].end);
    this.#blankTo(tokens[stop].end, '(');
    return stop + 1;
  }

  // ---- classes ----

  #class(index) {
    const tokens = this.#tokens, contextId = tokens[index].contextId;
    if (tokens[index + 1].type === tt.name && !tokens[index].isExpression) this.#declare(this.#text(index + 1), 'class');
    let at = index + 1, hasParent = false;
    for (; tokens[at].contextId !== contextId || tokens[at].type !== tt.braceL; ++at) {
      if (tokens[at].type === tt._extends && !tokens[at].isType) hasParent = true;
    }
    // Members' names have the class's number.
    const brace = at;
    for (++at; tokens[at].contextId !== contextId || tokens[at].type !== tt.braceR; ++at) {
      if (tokens[at].contextId === contextId && tokens[at].contextualKeyword === word._constructor && !tokens[at].isType &&
          tokens[at + 1].type === tt.parenL) {
        this.#parameterProperties(brace, at + 1, hasParent);
      }
    }
    return index + 1;
  }

  /// `constructor(private x)` is a field x, and stores x in it: at the start, or behind the call of super.
  #parameterProperties(brace, index, hasParent) {
    const tokens = this.#tokens, contextId = tokens[index].contextId, names = [];
    let at = index;
    for (; tokens[at].contextId !== contextId || tokens[at].type !== tt.parenR; ++at) {
      if (tokens[at].contextId !== contextId || !parameterModifiers.has(tokens[at + 1].type)) continue;
      let name = at + 1;
      while (parameterModifiers.has(tokens[name].type)) ++name;
      if (tokens[name].type === tt.name) names.push(this.#text(name));
    }
    if (names.length === 0) return;
    while (tokens[at].contextId !== contextId || tokens[at].type !== tt.braceL) ++at;
    this.#inserts.set(brace, names.map((name) => ` ${name};`).join(''));
    const stores = names.map((name) => `this.${name} = ${name}`);
    if (!hasParent) {
      this.#inserts.set(at, ` ${stores.join('; ')};`);
      return;
    }
    for (let depth = 1, each = at + 1; depth > 0; ++each) {
      if (tokens[each].type === tt.braceL || tokens[each].type === tt.dollarBraceL) ++depth;
      if (tokens[each].type === tt.braceR) --depth;
      if (tokens[each].type === tt._class) each = this.#endOfClass(each);
      if (tokens[each].type === tt._super && tokens[each + 1].type === tt.parenL) {
        this.#inserts.set(this.#behindBrackets(each + 1) - 1, `, ${stores.join(', ')}`);
      }
    }
  }
  #endOfClass(index) {
    const tokens = this.#tokens, { contextId } = tokens[index];
    while (tokens[++index].contextId !== contextId || tokens[index].type !== tt.braceR);
    return index;
  }

  /// Blanked, with the end of the member before it where JavaScript would go on with that.
  #modifier(index) {
    const tokens = this.#tokens, before = tokens[index - 1];
    let next = index + 1;
    while (memberModifiers.has(tokens[next].type)) ++next;
    const isParameter = before.type === tt.parenL || before.type === tt.comma;
    const goesOn = tokens[next].type === tt.bracketL || tokens[next].type === tt.star || tokens[next].type === tt._in || tokens[next].type === tt._instanceof;
    this.#copyTo(tokens[index].start);
    this.#blankTo(tokens[index].end, goesOn && !isParameter && !memberModifiers.has(before.type) ? ';' : '');
    return index + 1;
  }

  /// `abstract class` is a class; a member that is only declared goes.
  #abstractMember(index) {
    const tokens = this.#tokens;
    let at = index + 1;
    while (memberModifiers.has(tokens[at].type)) ++at;
    if (tokens[at].type !== tt._class) {
      if (tokens[at].type === tt.bracketL) at = this.#behindBrackets(at);
      else at += tokens[at].type === tt.hash ? 2 : 1;
      at = this.#endOfTypes(at);
      if (tokens[at].type !== tt.eq && tokens[at].type !== tt.parenL) {
        this.#copyTo(tokens[index].start);
        this.#blankTo(tokens[at - 1].end, ';');
        return at;
      }
    }
    if (tokens[index].type === tt._static) return index + 1;
    return tokens[at].type === tt._class ? (this.#blankToken(index), index + 1) : this.#modifier(index);
  }

  // ---- enums and namespaces ----

  /// `var E = (function (E) {` for a name that is new in its block, and what closes it. A value of the same name is added to.
  #opening(name, exported, inside = name) {
    const before = this.#declare(name, 'value'), isInBlock = this.#declared.length > 1;
    if (before === 'class' || before === 'function') {
      this.#declare(name, before);
      return [`;(function (${inside}) {`, ` })(${name});`];
    }
    const keyword = isInBlock ? (before === undefined ? 'let ' : '') : `${exported === 'module' && before === undefined ? 'export ' : ''}var `;
    const property = exported === 'namespace' ? `${this.#namespace}.${name}` : '';
    const value = before !== undefined ? (isInBlock ? name : `${name} || {}`) : property === '' ? '{}' : `${property} || {}`;
    return [`${keyword}${name} = (function (${inside}) {`, ` return ${inside}; })(${value});${property === '' ? '' : ` ${property} = ${name};`}`];
  }
  #exportKind(isExported) { return !isExported ? '' : this.#namespace !== '' ? 'namespace' : 'module'; }

  /// From `first` (const, or export before it) to the closing brace.
  #enum(first, keyword, exported) {
    const tokens = this.#tokens, name = this.#text(keyword + 1);
    const [open, close] = this.#opening(name, exported);
    this.#copyTo(tokens[first].start);
    this.#out += open;
    this.#at = tokens[keyword + 1].end;
    let at = keyword + 2, previous = '';
    this.#copyTo(tokens[at].start);
    this.#at = tokens[at].end;
    const block = this.#declared[this.#declared.length - 1];
    if (!this.#members.has(block)) this.#members.set(block, new Map());
    const known = this.#members.get(block).get(name) ?? [];
    this.#members.get(block).set(name, known);
    if (known.length > 0) this.#out += ` const { ${known.join(', ')} } = ${name};`;
    for (++at; tokens[at].type !== tt.braceR;) {
      this.#copyTo(tokens[at].start);
      const isString = tokens[at].type === tt.string, raw = this.#text(at), key = isString ? raw : `'${raw}'`;
      const plain = isString ? raw.slice(1, -1) : raw;
      const isVariable = identifier.test(plain) && !reserved.has(plain) && plain !== name;
      const value = isVariable ? plain : `${name}[${key}]`;
      this.#at = tokens[at].end;
      if (isVariable) known.push(plain);
      if (isVariable) this.#out += `const ${plain}`;
      else this.#out += value;
      if (tokens[at + 1].type === tt.eq) {
        const from = at + 1;
        at = tokens[from].rhsEndIndex;
        const isText = at === from + 2 && (tokens[from + 1].type === tt.string);
        const isNumber = at === from + 2 && tokens[from + 1].type === tt.num;
        this.#range(from, at);
        this.#copyTo(tokens[at - 1].end);
        this.#out += isText ? (isVariable ? `; ${name}[${key}] = ${value};` : ';')
          : isNumber ? `; ${name}[${name}[${key}] = ${value}] = ${key};`
            : `; if (typeof (${name}[${key}] = ${value}) === 'number') ${name}[${value}] = ${key};`;
      } else {
        ++at;
        this.#out += ` = ${previous === '' ? '0' : `${previous} + 1`}; ${name}[${name}[${key}] = ${value}] = ${key};`;
      }
      previous = value;
      if (tokens[at].type === tt.comma) {
        this.#copyTo(tokens[at].start);
        this.#at = tokens[at].end;
        ++at;
      }
    }
    this.#copyTo(tokens[at].start);
    this.#out += close;
    this.#at = tokens[at].end;
    return at + 1;
  }

  #isNamespace(index) {
    const tokens = this.#tokens;
    if (tokens[index + 1].type !== tt.name) return false;
    let at = index + 2;
    while (tokens[at].type === tt.dot) at += 2;
    return tokens[at].type === tt.braceL;
  }

  /// `namespace A.B { … }`, whose body is parsed by itself: as code, which the parser did not take it for.
  #namespaceDeclaration(index, isExported) {
    const tokens = this.#tokens, names = [this.#text(index + 1)];
    let at = index + 2;
    for (; tokens[at].type === tt.dot; at += 2) names.push(this.#text(at + 1));
    const end = this.#behindBrackets(at), from = tokens[at].end, to = tokens[end - 1].start;
    const body = new Emitter(this.#code.slice(from, to), '', names[names.length - 1]);
    const inside = body.nameInside(), text = body.emit();
    if (!body.hasValues) {
      this.#empty.add(names[0]);
      this.#blankTo(tokens[end - 1].end);
      return end;
    }
    this.hasValues = true;
    const first = isExported ? index - 1 : index;
    const isLast = (i) => i === names.length - 1;
    const [open, close] = this.#opening(names[0], this.#exportKind(isExported), isLast(0) ? inside : names[0]);
    this.#out += open;
    let tail = close;
    for (let i = 1; i < names.length; ++i) {
      const called = isLast(i) ? inside : names[i];
      this.#out += ` var ${names[i]} = (function (${called}) {`;
      tail = ` return ${called}; })(${names[i - 1]}.${names[i]} || {}); ${names[i - 1]}.${names[i]} = ${names[i]};${tail}`;
    }
    this.#out += `${this.#code.slice(tokens[first].start, from).replace(notLineEnd, '')}${text};${tail}`;
    this.#at = tokens[end - 1].end;
    return end;
  }

  // ---- modules ----

  /// Reads once which names are used or declared as values, which imported, and which stand in lists of exports.
  #readNames() {
    if (this.#values !== null) return;
    const tokens = this.#tokens;
    this.#values = new Set();
    for (let i = 0; i < tokens.length; ++i) {
      const token = tokens[i];
      if (token.isType) {
        if (token.type === tt.name && (token.contextualKeyword === word._namespace || token.contextualKeyword === word._module)) this.#values.add(this.#text(i + 1));
        continue;
      }
      if (token.type === tt._export && tokens[i + 1].contextualKeyword === word._type && tokens[i + 2].type === tt.braceL) i = this.#behindBrackets(i + 2);
      if (tokens[i].type !== tt.name) continue;
      switch (tokens[i].identifierRole) {
        case IdentifierRole.ImportDeclaration: this.#imported.add(this.#text(i)); break;
        case IdentifierRole.ExportAccess: this.#exported.add(this.#text(i)); break;
        case IdentifierRole.ImportAccess: case IdentifierRole.ObjectKey: break;
        default:
          if (i === 0 || (tokens[i - 1].type !== tt.dot && tokens[i - 1].type !== tt.questionDot)) this.#values.add(this.#text(i));
      }
    }
  }
  #isUsed(name) {
    this.#readNames();
    return this.#values.has(name) || this.#exported.has(name);
  }
  #isValue(name) {
    this.#readNames();
    return this.#values.has(name) || this.#imported.has(name);
  }

  /// The index of the module's name in an import or export.
  #specifier(index) {
    const tokens = this.#tokens;
    while (tokens[index].type !== tt.string && tokens[index].type !== tt.eof) index = tokens[index].type === tt.braceL ? this.#behindBrackets(index) : index + 1;
    return index;
  }
  /// The index behind a statement that ends with a module's name.
  #behindSpecifier(index) {
    const tokens = this.#tokens;
    index = this.#specifier(index) + 1;
    if (tokens[index].type === tt._with || (tokens[index].type === tt.name && this.#text(index) === 'assert')) {
      if (tokens[index + 1].type === tt.braceL) index = this.#behindBrackets(index + 1);
    }
    return tokens[index].type === tt.semi ? index + 1 : index;
  }

  #erase(from, to) {
    this.#copyTo(this.#tokens[from].start);
    this.#blankTo(this.#tokens[to - 1].end, ';');
    return to;
  }

  /// In `{ a, type B, c as d }` from its brace: blanks what is only a type. How many were kept and blanked.
  #specifiers(index, isType) {
    const tokens = this.#tokens, counts = { kept: 0, blanked: [], end: 0, names: [], isWrong: false };
    let at = index + 1;
    while (tokens[at].type !== tt.braceR) {
      const from = at;
      while (tokens[at].type !== tt.comma && tokens[at].type !== tt.braceR) ++at;
      // `type`, `type as x` and `x as type` are names; `type x` and `type x as y` are types.
      const length = at - from, hasWord = tokens[from].contextualKeyword === word._type &&
        (length === 2 || length === 4 || (length === 3 && tokens[from + 1].contextualKeyword !== word._as));
      if (!hasWord && length !== 1 && length !== 3) counts.isWrong = true;
      const isGone = hasWord || isType(this.#text(from), this.#text(at - 1));
      const local = at - 1;
      if (tokens[at].type === tt.comma) ++at;
      if (isGone) {
        counts.blanked.push([from, at]);
      } else {
        ++counts.kept;
        counts.names.push(local === from ? this.#text(from) : `${this.#text(from)}: ${this.#text(local)}`);
      }
    }
    counts.end = at;
    return counts;
  }
  #blankRanges(ranges) {
    for (const [from, to] of ranges) {
      this.#copyTo(this.#tokens[from].start);
      this.#blankTo(this.#tokens[to - 1].end);
    }
  }

  #import(index) {
    const tokens = this.#tokens;
    let at = index + 1;
    if (tokens[at].type === tt.parenL || tokens[at].type === tt.dot) return at;
    if (tokens[at].type === tt.string) return this.#importOf(index, this.#behindSpecifier(at), []);
    const isTypeImport = tokens[at].contextualKeyword === word._type && tokens[at + 1].contextualKeyword !== word._from &&
      tokens[at + 1].type !== tt.comma && tokens[at + 1].type !== tt.eq;
    if (tokens[isTypeImport ? at + 2 : at + 1].type === tt.eq) {  // import x = require("y"), import x = A.B
      const name = isTypeImport ? at + 1 : at;
      if (isTypeImport || this.#isTypeAlias(name)) return this.#erase(index, this.#behindAlias(name));
      this.#copyTo(tokens[index].start);
      this.#out += 'const ';
      this.#at = tokens[index].end;
      return name;
    }
    const end = this.#behindSpecifier(at);
    if (isTypeImport) return this.#erase(index, end);
    let kept = 0, blanked = [], hasList = false, isOnlyDefaultGone = false;
    const names = [];  // for a cell
    if (tokens[at].type === tt.name) {
      if (this.#isModule && !this.#isUsed(this.#text(at))) isOnlyDefaultGone = true;
      else ++kept;
      names.push(`default: ${this.#text(at)}`);
      ++at;
      if (tokens[at].type === tt.comma) ++at;
    }
    if (tokens[at].type === tt.star) {
      if (this.#isModule && !this.#isUsed(this.#text(at + 2)) && kept === 0) return this.#erase(index, end);
      ++kept;
      names.push(`* ${this.#text(at + 2)}`);
    } else if (tokens[at].type === tt.braceL) {
      hasList = true;
      const counts = this.#specifiers(at, (_, local) => this.#isModule && !this.#isUsed(local));
      if (counts.isWrong) return end;  // JavaScript says why
      names.push(...counts.names);
      kept += counts.kept;
      blanked = counts.blanked;
    }
    if (kept === 0 && (isOnlyDefaultGone || blanked.length > 0 || !hasList)) return this.#erase(index, end);
    if (this.#isCell) return this.#importOf(index, end, names);
    this.#blankRanges(blanked);
    return end;
  }

  /// An import declaration as a statement: `names` are as in a pattern, `* x` is the module itself.
  #importOf(index, end, names) {
    const tokens = this.#tokens;
    if (!this.#isCell || this.#declared.length > 1) return end;
    const at = this.#specifier(index + 1);
    const start = tokens[index].start, last = tokens[end - 1].end;
    const attributes = at + 1 < end && tokens[at + 1].type !== tt.semi ? `, { with: ${this.#code.slice(tokens[at + 2].start, last).replace(/;$/, '')} }` : '';
    const load = `await import(${this.#text(at)}${attributes})`;
    const whole = names.find((name) => name.startsWith('* '))?.slice(2);
    const list = names.filter((name) => !name.startsWith('* ')).join(', ');
    this.#copyTo(start);
    this.#out += names.length === 0 && tokens[index + 1].type === tt.string ? `${load};`
      : whole === undefined ? `const { ${list} } = ${load};`
        : `const ${whole} = ${load}${list === '' ? '' : `, { ${list} } = ${whole}`};`;
    this.#out += this.#code.slice(start, last).replace(notLineEnd, '');  // the lines after it keep their numbers
    this.#at = last;
    return end;
  }

  /// Of `import x = A.B`: whether it is but types that it names.
  #isTypeAlias(name) {
    const tokens = this.#tokens;
    if (tokens[name + 3].type === tt.parenL || this.#isUsed(this.#text(name))) return false;
    return this.#isModule || this.#namespace !== '' || this.#empty.has(this.#text(name + 2));
  }
  #behindAlias(name) {
    const tokens = this.#tokens;
    let end = name + 2;
    while (tokens[end].type === tt.name && tokens[end + 1].type === tt.dot) end += 2;
    ++end;
    if (tokens[end].type === tt.parenL) end = this.#behindBrackets(end);
    return tokens[end].type === tt.semi ? end + 1 : end;
  }

  #export(index) {
    const tokens = this.#tokens, next = tokens[index + 1];
    const exported = this.#exportKind(true);
    switch (next.type) {
      case tt._enum: return this.#enum(index, index + 1, exported);
      case tt._const: if (tokens[index + 2].type === tt._enum) return this.#enum(index, index + 2, exported); break;
      case tt._import: {
        const isType = tokens[index + 2].contextualKeyword === word._type && tokens[index + 3].type !== tt.eq;
        const name = index + (isType ? 3 : 2), end = this.#behindAlias(name);
        if (isType || this.#empty.has(this.#text(name + 2))) return this.#erase(index, end);
        if (this.#namespace === '') return index + 1;
        this.#blankToken(index);
        this.#copyTo(next.start);
        this.#out += 'const ';
        this.#at = next.end;
        this.#copyTo(tokens[end - 1].end);
        this.#out += `; ${this.#namespace}.${this.#text(name)} = ${this.#text(name)};`;
        return end;
      }
      case tt.eq:
        this.#copyTo(tokens[index].start);
        this.#out += 'module.exports ';
        this.#at = next.start;
        return index + 1;
      case tt.braceL: {
        const counts = this.#specifiers(index + 1, (local) => this.#isModule && !this.#isFrom(index + 1) && !this.#isValue(local));
        this.#blankRanges(counts.blanked);
        return counts.end;
      }
      case tt.name:
        if (next.contextualKeyword === word._type && (tokens[index + 2].type === tt.braceL || tokens[index + 2].type === tt.star)) {
          let end = index + 2;
          if (tokens[end].type === tt.braceL) end = this.#behindBrackets(end);
          if (tokens[index + 2].type === tt.star || tokens[end].contextualKeyword === word._from) end = this.#behindSpecifier(end);
          else if (tokens[end].type === tt.semi) ++end;
          return this.#erase(index, end);
        }
        break;
    }
    if (this.#namespace === '') return index + 1;
    // Of a namespace: what is declared becomes a property too.
    const end = tokens[index].rhsEndIndex ?? index + 1;
    this.#blankToken(index);
    const isVariable = next.type === tt._let || next.type === tt._var, names = [];
    for (let i = index + 1; i < end; ++i) {
      const role = tokens[i].identifierRole;
      if (role === IdentifierRole.TopLevelDeclaration || role === IdentifierRole.ObjectShorthandTopLevelDeclaration) names.push(this.#text(i));
    }
    this.#range(index + 1, end);
    this.#copyTo(tokens[end - 1].end);
    if (names.length > 0 && tokens[end - 1].type !== tt.semi) this.#out += ';';
    for (const name of names) {
      this.#out += isVariable
        ? ` Object.defineProperty(${this.#namespace}, '${name}', { get: () => ${name}, set: (value) => { ${name} = value; }, enumerable: true, configurable: true });`
        : ` ${this.#namespace}.${name} = ${name};`;
    }
    return end;
  }
  #isFrom(index) { return this.#tokens[this.#behindBrackets(index)].contextualKeyword === word._from; }
}

const lineOf = (code, position) => {
  let line = 1;
  for (let i = 0; i < position; ++i) if (code[i] === '\n') ++line;
  return line;
};

/// '=' and the JavaScript; or '!', a line, ':' and why it cannot be written as JavaScript; or '?' (with '&' instead, the
/// code stops too early), a line, ':' and why it is no TypeScript.
globalThis.stripTypes = (code, isModule, isCell) => {
  try {
    return `=${new Emitter(code, isModule ? 'module' : isCell ? 'cell' : '', '').emit()}`;
  } catch (error) {
    if (error instanceof Unsupported) return `!${lineOf(code, error.position)}:${error.message}`;
    // The parser knows none of parameters.
    if (error.loc !== undefined && code[error.pos] === '@') return `!${error.loc.line}:${noDecorators}`;
    if (error.loc !== undefined) return `${error.pos >= code.trimEnd().length ? '&' : '?'}${error.loc.line}:${error.message.replace(/ \(\d+:\d+\)$/, '')}`;
    return `?0:${error.message}`;
  } finally {
    initParser('', false, true, false);  // nothing of the code stays
  }
};
