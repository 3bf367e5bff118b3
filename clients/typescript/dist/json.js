/** JSON that changes nothing in silence: integers beyond 2^53 are bigints, and what JSON or a number cannot hold is refused. */
import { randomUUID } from "node:crypto";
import { types } from "node:util";
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
export class InexactNumber extends Error {
}
/** A number that no other can hold, as it was written. */
class WrittenNumber {
    text;
    constructor(text) {
        this.text = text;
    }
    toJSON() {
        return `${MARK}${this.text}`;
    }
}
let isAnyWritten = false;
/** Throws an `InexactNumber`, or a `SyntaxError`. */
export function parse(text) {
    return parseWith(text, (number) => {
        throw new InexactNumber(`the number ${number.slice(0, 40)} cannot be kept as it is`);
    });
}
/** From now on, libraries in this process, too, read and write JSON without a change to a number. */
export function keepNumbers() {
    JSON.parse = (text, reviver) => (reviver ? read(text, reviver) : parseWith(String(text), () => (isAnyWritten = true)));
    JSON.stringify = (value, ...form) => (form.length > 0 ? write(value, ...form) : stringify(value));
}
/** Calls `inexact` with each number that neither a double nor a bigint can hold. */
function parseWith(text, inexact) {
    if (!SUSPECT.test(text))
        return read(text);
    let key = "bigint";
    while (text.includes(key))
        key += "_";
    const marked = outsideOfTexts(text, (part) => part.replace(/-?\d[\d.eE+-]*/g, (number) => {
        if (isExact(number) || !NUMBER.test(number))
            return number;
        if (!isBigInt(number))
            inexact(number);
        return `{"${key}":"${number}"}`;
    }));
    return read(marked, (_, value) => {
        const number = value?.[key];
        return number === undefined ? value : isBigInt(number) ? BigInt(number) : new WrittenNumber(number);
    });
}
/** Throws if a part has no JSON form. */
export function stringify(value) {
    try {
        const text = write(value);
        // What is no number becomes `null` there.
        if (!isAnyWritten && !text?.includes("null"))
            return text;
    }
    catch (error) {
        // Such as a bigint.
        if (!(error instanceof TypeError))
            throw error;
    }
    const text = write(value, (_, part) => {
        if (typeof part === "bigint")
            return `${MARK}${part}`;
        if (typeof part === "number" && !Number.isFinite(part))
            throw new TypeError(`${part} is not a number of JSON`);
        return part;
    });
    return text?.replace(MARKED, "$1");
}
/** Throws if the JSON form of a part of a value, which has no circles, says less than the part, such as that of a `Map`. */
export function checkForm(value) {
    const loss = lossIn(value);
    if (loss !== undefined)
        throw new TypeError(loss.replace(/^\./, ""));
}
/** Where something would be lost, and what it is. */
function lossIn(part) {
    if (typeof part === "function" || typeof part === "symbol")
        return ` is a ${typeof part}`;
    if (typeof part !== "object" || part === null)
        return undefined;
    if (Array.isArray(part)) {
        if ("toJSON" in part)
            return " is an array with a JSON form of its own";
        for (let at = 0; at < part.length; at++) {
            const loss = lossIn(part[at]);
            if (loss !== undefined)
                return `[${at}]${loss}`;
        }
        return undefined;
    }
    if (!isPlain(part))
        return saysAll(part) ? undefined : ` is an object of the class ${part.constructor?.name}`;
    for (const key of Object.keys(part)) {
        const loss = lossIn(part[key]);
        if (loss !== undefined)
            return (/^\w+$/.test(key) ? `.${key}` : `[${write(key)}]`) + loss;
    }
    return undefined;
}
/** Whether an object is no more than its keys: its prototype is that of all objects, here or in another realm, or none. */
function isPlain(part) {
    const prototype = Object.getPrototypeOf(part);
    if (prototype === Object.prototype || prototype === null)
        return true;
    return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, "hasOwnProperty");
}
/** Whether an object that is not plain has a JSON form from which it can be made again. */
function saysAll(part) {
    const isDate = types.isDate(part) && !Number.isNaN(part.getTime());
    return isDate || part instanceof URL || types.isUint8Array(part) || part instanceof WrittenNumber;
}
function outsideOfTexts(text, change) {
    let changed = "";
    for (let from = 0; from < text.length;) {
        const quote = text.indexOf('"', from);
        const open = quote < 0 ? text.length : quote;
        let close = open + 1;
        while (close < text.length && text[close] !== '"')
            close += text[close] === "\\" ? 2 : 1;
        changed += change(text.slice(from, open)) + text.slice(open, close + 1);
        from = close + 1;
    }
    return changed;
}
const isBigInt = (number) => number.length <= LONGEST_NUMBER && /^-?\d+$/.test(number);
function isExact(number) {
    return number.length <= LONGEST_NUMBER && digits(number) === digits(String(Number(number)));
}
/** The digits of a number and its exponent, however it is written. */
function digits(number) {
    const written = /^(-?)0*(\d*?)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(number);
    if (!written)
        return undefined;
    const [, sign, whole = "", fraction = "", exponent = "0"] = written;
    const all = (whole + fraction).replace(/^0+/, "");
    const kept = all.replace(/0+$/, "");
    return kept && `${sign}${kept}e${Number(exponent) - fraction.length + all.length - kept.length}`;
}
