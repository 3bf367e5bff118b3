// Splits a shell line into its simple commands, as far as sh would without running it:
// quotes, backslashes, comments, operators, redirections and substitutions are understood,
// variables and globs are left as written.
//
// splitCommands('a "b c" | d >e') gives
//   [{ words: [{ text: 'a', … }, { text: 'b c', … }], redirects: [], substitutions: [], operator: '|' },
//    { words: [{ text: 'd', … }], redirects: ['e'], substitutions: [], operator: '' }]
// where each word also has `start` and `end`, its place in the line.

const SUBSTITUTION = /[$<>]\(|`/y;
const REDIRECT = /\d*[<>]+[&|]?|&>>?/y;
const OPERATOR = /&&|\|\||\|&|;;|[;&|\n()]/y;

const emptyCommand = () => ({ words: [], redirects: [], substitutions: [], operator: '' });

export function splitCommands(line) {
  const commands = [];
  let command = emptyCommand();
  let word = null;
  let isTarget = false; // the next word is where a redirection goes
  let quote = '';
  let at = 0;

  const matchHere = (pattern) => {
    pattern.lastIndex = at;
    return pattern.exec(line)?.[0];
  };
  const extend = (text) => {
    word ??= { text: '', start: at };
    word.text += text;
  };
  const endWord = () => {
    if (word && isTarget) command.redirects.push(word.text);
    else if (word) command.words.push({ ...word, end: at });
    if (word) isTarget = false;
    word = null;
  };

  while (at < line.length) {
    const char = line[at];
    let taken = 1;
    let token;
    if (quote === "'") {
      if (char === quote) quote = '';
      else extend(char);
    } else if (char === '\\') {
      if (line[at + 1] !== '\n') extend(line[at + 1] ?? '');
      taken = 2;
    } else if (char === '"' || (char === "'" && !quote)) {
      quote = quote ? '' : char;
      extend('');
    } else if ((token = matchHere(SUBSTITUTION))) {
      const end = closing(line, at, token);
      command.substitutions.push(line.slice(at + token.length, end));
      extend(line.slice(at, end + 1));
      taken = end + 1 - at;
    } else if (quote || (char === '$' && `'"`.includes(line[at + 1] ?? ' '))) {
      if (quote) extend(char);
    } else if (/[ \t\r]/.test(char)) {
      endWord();
    } else if (char === '#' && !word) {
      taken = line.slice(at).search(/\n|$/);
    } else if ((!word || /[<>&]/.test(char)) && (token = matchHere(REDIRECT))) {
      endWord();
      isTarget = true;
      taken = token.length;
    } else if ((token = matchHere(OPERATOR))) {
      endWord();
      commands.push({ ...command, operator: token });
      command = emptyCommand();
      taken = token.length;
    } else {
      extend(char);
    }
    at += taken;
  }
  endWord();
  return [...commands, command];
}

function closing(line, from, opener) {
  if (opener === '`') return (line.indexOf('`', from + 1) + 1 || line.length + 1) - 1;
  let depth = 0;
  for (let at = from + 1; at < line.length; at += 1) {
    if (line[at] === '(') depth += 1;
    if (line[at] === ')') depth -= 1;
    if (depth === 0) return at;
  }
  return line.length;
}

// The first word that is not an assignment (`CI=1 npm test`) or a keyword (`then rm x`).
const BEFORE_COMMAND = /^([A-Za-z_]\w*\+?=.*|[{}!]|if|then|elif|else|while|until|do|time)$/s;

export function commandStart(texts) {
  const start = texts.findIndex((text) => !BEFORE_COMMAND.test(text));
  return start === -1 ? texts.length : start;
}
