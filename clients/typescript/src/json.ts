/** JSON that never changes a number: integers beyond 2^53 are bigints, and what no number can hold is refused. */

import { randomUUID } from "node:crypto";

/** The longest number that is looked at. */
const LONGEST_NUMBER = 400;

/** What may be a number that a double cannot hold: sixteen digits, or an exponent. */
const SUSPECT = /[[:,\s]-?(?:\d[\d.]{15}|\d[\d.]*[eE])/;

/** A number as JSON has it. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Marks a bigint on its way into JSON. Nobody outside of this process knows it. */
const MARK = randomUUID();
const MARKED = new RegExp(`"${MARK}(-?\\d[\\d.eE+-]*)"`, "g");

/** Those of the language, also after `keepNumbers`. */
const { parse: read, stringify: write } = JSON;

/** A number in JSON that would be changed. */
export class InexactNumber extends Error {}

/** A number that no other can hold, as it was written. */
class WrittenNumber {
  constructor(private readonly text: string) {}

  toJSON(): string {
    return `${MARK}${this.text}`;
  }
}

let isAnyWritten = false;

/** Throws an `InexactNumber`, or a `SyntaxError`. */
export function parse(text: string): unknown {
  return parseWith(text, (number) => {
    throw new InexactNumber(`the number ${number.slice(0, 40)} cannot be kept as it is`);
  });
}

/** From now on, libraries in this process, too, read and write JSON without a change to a number. */
export function keepNumbers(): void {
  JSON.parse = (text, reviver) => (reviver ? read(text, reviver) : parseWith(String(text), () => (isAnyWritten = true)));
  JSON.stringify = (value: unknown, ...form: any[]) => (form.length > 0 ? write(value, ...form) : stringify(value));
}

/** Calls `inexact` with each number that neither a double nor a bigint can hold. */
function parseWith(text: string, inexact: (number: string) => void): unknown {
  if (!SUSPECT.test(text)) return read(text);
  let key = "bigint";
  while (text.includes(key)) key += "_";
  const marked = outsideOfTexts(text, (part) =>
    part.replace(/-?\d[\d.eE+-]*/g, (number) => {
      if (isExact(number) || !NUMBER.test(number)) return number;
      if (!isBigInt(number)) inexact(number);
      return `{"${key}":"${number}"}`;
    }),
  );
  return read(marked, (_, value) => {
    const number = value?.[key];
    return number === undefined ? value : isBigInt(number) ? BigInt(number) : new WrittenNumber(number);
  });
}

/** Throws if a part has no JSON form. */
export function stringify(value: unknown): string {
  try {
    const text = write(value);
    // What is no number becomes `null` there.
    if (!isAnyWritten && !text?.includes("null")) return text;
  } catch (error) {
    // Such as a bigint.
    if (!(error instanceof TypeError)) throw error;
  }
  const text = write(value, (_, part) => {
    if (typeof part === "bigint") return `${MARK}${part}`;
    if (typeof part === "number" && !Number.isFinite(part)) throw new TypeError(`${part} is not a number of JSON`);
    return part;
  });
  return text?.replace(MARKED, "$1");
}

function outsideOfTexts(text: string, change: (part: string) => string): string {
  let changed = "";
  for (let from = 0; from < text.length; ) {
    const quote = text.indexOf('"', from);
    const open = quote < 0 ? text.length : quote;
    let close = open + 1;
    while (close < text.length && text[close] !== '"') close += text[close] === "\\" ? 2 : 1;
    changed += change(text.slice(from, open)) + text.slice(open, close + 1);
    from = close + 1;
  }
  return changed;
}

const isBigInt = (number: string): boolean => number.length <= LONGEST_NUMBER && /^-?\d+$/.test(number);

function isExact(number: string): boolean {
  return number.length <= LONGEST_NUMBER && digits(number) === digits(String(Number(number)));
}

/** The digits of a number and its exponent, however it is written. */
function digits(number: string): string | undefined {
  const written = /^(-?)0*(\d*?)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(number);
  if (!written) return undefined;
  const [, sign, whole = "", fraction = "", exponent = "0"] = written;
  const all = (whole + fraction).replace(/^0+/, "");
  const kept = all.replace(/0+$/, "");
  return kept && `${sign}${kept}e${Number(exponent) - fraction.length + all.length - kept.length}`;
}
