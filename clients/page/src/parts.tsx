// Parts that several pages have.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ApiError } from "./api";
import type { DiffLine } from "./diff";
import { count } from "./format";
import { VERDICTS, type Verdict, type Verdicts } from "./types";

/// A sign for each verdict, so that none is told by its colour alone.
const SIGNS: Record<Verdict, string> = { proceed: "·", allow: "✓", ask: "?", block: "✕", halt: "■" };

export function VerdictBadge({ verdict }: { verdict: Verdict }) {
  return (
    <span class={`verdict ${verdict}`}>
      <span aria-hidden="true">{SIGNS[verdict] ?? "·"}</span> {verdict}
    </span>
  );
}

/// The counts of verdicts that there were.
export function VerdictCounts({ verdicts }: { verdicts: Verdicts }) {
  const seen = VERDICTS.filter((verdict) => verdicts[verdict] > 0);
  if (seen.length === 0) return <span class="quiet">none</span>;
  return (
    <span class="verdicts">
      {seen.map((verdict) => (
        <span key={verdict} class={`verdict ${verdict}`}>
          <span aria-hidden="true">{SIGNS[verdict]}</span> {count(verdicts[verdict])} {verdict}
        </span>
      ))}
    </span>
  );
}

export function Failure({ error, again }: { error: ApiError; again?: () => void }) {
  return (
    <p class="notice bad" role="alert">
      <strong>{error.message}.</strong> {error.hint}.{" "}
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </p>
  );
}

/// What stands where there is nothing to show, and what to do about it.
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function Section({ title, aside, children }: { title: string; aside?: ComponentChildren; children: ComponentChildren }) {
  const id = `section-${title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  return (
    <section aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

/// A text that a person may want to have elsewhere.
export function Copy({ text, label }: { text: string; label: string }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      setSaid("Select the text and copy it");
    }
    setTimeout(() => setSaid(""), 2000);
  };
  return (
    <span class="copy">
      <button type="button" onClick={copy}>
        {label}
      </button>
      <span role="status">{said}</span>
    </span>
  );
}

/// What is different in a text, line by line.
export function Difference({ label, lines }: { label: string; lines: DiffLine[] }) {
  return (
    <pre class="diff" tabIndex={0} aria-label={label}>
      {lines.map((line, index) => (
        <span key={index} class={line.sign === "+" ? "added" : line.sign === "-" ? "removed" : ""}>
          {line.sign} {line.text}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

export interface Column<R> {
  name: string;
  /// What the column is about, for people who point at it.
  hint?: string;
  number?: boolean;
  cell: (row: R) => ComponentChildren;
  /// What rows are sorted by; none if the column sorts nothing.
  order?: (row: R) => number | string;
}

export interface Sorting {
  column: number;
  down: boolean;
}

interface TableProps<R> {
  caption: string;
  columns: Column<R>[];
  rows: R[];
  id: (row: R) => string;
  sorting?: Sorting;
  onSort?: (sorting: Sorting) => void;
  /// How many rows a page has.
  most?: number;
}

export function sorted<R>(rows: R[], columns: Column<R>[], { column, down }: Sorting): R[] {
  const order = columns[column]?.order;
  if (!order) return rows;
  const compare = (one: R, other: R) => {
    const [left, right] = [order(one), order(other)];
    const compared = typeof left === "number" && typeof right === "number" ? left - right : String(left).localeCompare(String(right));
    return down ? -compared : compared;
  };
  return [...rows].sort(compare);
}

export function Table<R>({ caption, columns, rows, id, sorting, onSort, most = 100 }: TableProps<R>) {
  const [page, setPage] = useState(0);
  const pages = Math.max(1, Math.ceil(rows.length / most));
  const current = Math.min(page, pages - 1);
  const all = sorting ? sorted(rows, columns, sorting) : rows;
  const shown = all.slice(current * most, (current + 1) * most);
  return (
    <>
      <div class="table">
        <table role="table">
          <caption class="unseen">{caption}</caption>
          <thead role="rowgroup">
            <tr role="row">
              {columns.map((column, index) => {
                const isSorted = sorting?.column === index;
                const state = isSorted ? (sorting.down ? "descending" : "ascending") : undefined;
                return (
                  <th key={column.name} role="columnheader" scope="col" class={column.number ? "number" : ""} title={column.hint} {...(state ? { "aria-sort": state as "ascending" | "descending" } : {})}>
                    {onSort && column.order ? (
                      <button type="button" onClick={() => onSort({ column: index, down: isSorted ? !sorting.down : Boolean(column.number) })}>
                        {column.name}
                        <span aria-hidden="true">{isSorted ? (sorting.down ? " ▾" : " ▴") : ""}</span>
                      </button>
                    ) : (
                      column.name
                    )}
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {shown.map((row) => (
              <tr key={id(row)} role="row">
                {columns.map((column, index) =>
                  index === 0 ? (
                    <th key={column.name} role="rowheader" scope="row">
                      {column.cell(row)}
                    </th>
                  ) : (
                    <td key={column.name} role="cell" class={column.number ? "number" : ""} data-label={column.name}>
                      <div>{column.cell(row)}</div>
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {pages > 1 && (
        <nav class="pages" aria-label={`Pages of ${caption}`}>
          <button type="button" disabled={current === 0} onClick={() => setPage(current - 1)}>
            Previous
          </button>
          <span role="status">
            {count(current * most + 1)} to {count(Math.min(rows.length, (current + 1) * most))} of {count(rows.length)}
          </span>
          <button type="button" disabled={current === pages - 1} onClick={() => setPage(current + 1)}>
            Next
          </button>
        </nav>
      )}
    </>
  );
}
