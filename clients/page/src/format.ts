// Numbers with their units, and moments, as a person reads them.

const GROUPED = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(number: number): string {
  return GROUPED.format(number);
}

/// A number with up to three digits that count.
function digits(number: number): string {
  if (number === 0) return "0";
  if (number >= 100) return GROUPED.format(number);
  return number >= 10 ? number.toFixed(1) : number.toFixed(2);
}

export function rate(perSecond: number): string {
  if (perSecond > 0 && perSecond < 0.01) return "<0.01/s";
  return `${digits(perSecond)}/s`;
}

/// A duration in milliseconds.
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return `${GROUPED.format(ms * 1000)} µs`;
  if (ms < 1000) return `${digits(ms)} ms`;
  if (ms < 120_000) return `${digits(ms / 1000)} s`;
  return longDuration(ms);
}

/// A duration in milliseconds, of which seconds are not important.
export function longDuration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function ago(ms: number): string {
  return ms < 1000 ? "just now" : `${longDuration(ms)} ago`;
}

/// A moment in milliseconds since 1970, in the reader's time zone.
export function moment(at: number): string {
  const date = new Date(at);
  const two = (number: number) => String(number).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${time}`;
}

export function plural(number: number, word: string): string {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}
