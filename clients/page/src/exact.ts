// JSON of events with every digit of its numbers: JavaScript's own numbers lose those of large ones, and know nothing beyond
// 1.8e308.

/// What no text from outside begins with: it is made anew with each loading of the page.
const MARK = `number-${Math.random().toString(36).slice(2)}${Math.random().toString(36).slice(2)}-`;

/// A text, or a number.
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/// Reads JSON. A number that JavaScript would write otherwise is a text with a mark, which `prettyExact` takes off again.
export function parseExact<T>(json: string): T {
  return JSON.parse(json.replace(TOKENS, (token) => (token.startsWith('"') || String(Number(token)) === token ? token : `"${MARK}${token}"`)));
}

/// Writes what was read so, for people, with its numbers as they were sent.
export function prettyExact(value: unknown): string {
  return (JSON.stringify(value, undefined, 2) ?? "").replaceAll(new RegExp(`"${MARK}([^"]*)"`, "g"), "$1");
}
