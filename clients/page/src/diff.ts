// Line by line, what one text has that the other has not, and what hooks changed in a payload.
import { prettyExact } from "./exact";
import type { Decision, Payload, Stage } from "./types";

export interface DiffLine {
  sign: "+" | "-" | " ";
  text: string;
}

/// Beyond this product of lines, a comparison would keep the page from answering.
const MOST = 1_000_000;

/// How many equal lines are shown around a change.
const AROUND = 3;

/// How many lines two texts have in common from their beginnings.
function common(one: string[], other: string[]): number {
  const most = Math.min(one.length, other.length);
  for (let at = 0; at < most; at++) if (one[at] !== other[at]) return at;
  return most;
}

/// The difference of two texts; nothing if what is different is too long to compare.
export function difference(before: string, after: string): DiffLine[] | undefined {
  const [old, fresh] = [before.split("\n"), after.split("\n")];
  const head = common(old, fresh);
  const equal = (text: string): DiffLine => ({ sign: " ", text });
  const [oldRest, freshRest] = [old.slice(head), fresh.slice(head)];
  const tail = common(oldRest.toReversed(), freshRest.toReversed());
  const middle = compared(oldRest.slice(0, oldRest.length - tail), freshRest.slice(0, freshRest.length - tail));
  if (middle === undefined) return undefined;
  const lines = [...old.slice(0, head).map(equal), ...middle, ...oldRest.slice(oldRest.length - tail).map(equal)];
  const near = (index: number) => lines.slice(Math.max(0, index - AROUND), index + AROUND + 1).some((line) => line.sign !== " ");
  return lines.filter((_, index) => near(index));
}

function compared(old: string[], fresh: string[]): DiffLine[] | undefined {
  if (old.length * fresh.length > MOST) return undefined;
  const width = fresh.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      const equal = old[i] === fresh[j];
      common[i * width + j] = equal ? common[(i + 1) * width + j + 1]! + 1 : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      lines.push({ sign: " ", text: old[i++]! });
      j++;
    } else if (j >= fresh.length || (i < old.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) {
      lines.push({ sign: "-", text: old[i++]! });
    } else {
      lines.push({ sign: "+", text: fresh[j++]! });
    }
  }
  return lines;
}

/// All lines of a text that is on one side only.
function whole(sign: "+" | "-", text: string): DiffLine[] {
  const lines = text.split("\n");
  // A text ends with a line break, and no line follows it.
  if (lines.at(-1) === "") lines.pop();
  return lines.map((text) => ({ sign, text }));
}

/// The same for texts that may be absent on one side, or too long to compare: all of the one, then all of the other.
export function changes(before: string | null, after: string | null): DiffLine[] {
  if (before === null) return after === null ? [] : whole("+", after);
  if (after === null) return whole("-", before);
  return difference(before, after) ?? [...whole("-", before), ...whole("+", after)];
}

/// What one hook made of a part of a payload.
export interface HookChange {
  hook: string;
  target: string;
  /// Nothing if it is too large to be kept.
  made: string | undefined;
  /// Nothing if there is nothing to compare, or too much.
  lines: DiffLine[] | undefined;
  /// Whether the host gets nothing of it.
  isStopped: boolean;
}

/// Whether the host gets nothing of what hooks changed: what has already happened cannot be stopped.
function isStopped({ event, verdict }: Pick<Decision, "event" | "verdict">): boolean {
  return (verdict === "block" || verdict === "halt") && !event.startsWith("after_");
}

/// What each hook changed in what those before it had left, one after the other.
export function changesByHook(decision: Pick<Decision, "event" | "verdict"> & { reports: Pick<Stage, "hook" | "patched">[] }, payload: Payload): HookChange[] {
  const left = { ...payload.sent };
  return decision.reports.flatMap(({ hook, patched }, index) =>
    patched.map((target) => {
      const change = { hook, target, isStopped: isStopped(decision) };
      const value = payload.by_hook[index]?.[target];
      if (value === undefined) return { ...change, made: undefined, lines: undefined };
      const [before, made] = [prettyExact(left[target]), prettyExact(value)];
      left[target] = value;
      return { ...change, made, lines: difference(before, made) };
    }),
  );
}
