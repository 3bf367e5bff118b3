// Line by line, what one text has that the other has not.

export interface DiffLine {
  sign: "+" | "-" | " ";
  text: string;
}

/// Beyond this product of lines, a comparison would keep the page from answering.
const MOST = 1_000_000;

/// How many equal lines are shown around a change.
const AROUND = 3;

/// The difference of two texts; nothing if they are too long to compare.
export function difference(before: string, after: string): DiffLine[] | undefined {
  const [old, fresh] = [before.split("\n"), after.split("\n")];
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
  const near = (index: number) => lines.slice(Math.max(0, index - AROUND), index + AROUND + 1).some((line) => line.sign !== " ");
  return lines.filter((_, index) => near(index));
}
