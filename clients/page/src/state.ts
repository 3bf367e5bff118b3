// What the pages share: following the daemon, asking it again and again, and the address of the page.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, follow, get } from "./api";
import type { Now } from "./types";

export interface Asked<T> {
  value: T | undefined;
  error: ApiError | undefined;
  again: () => void;
}

export function asError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, "page", String(error), "load the page again");
}

/// Asks for something, and again every `period` milliseconds while the page is in sight; 0: once.
export function useAsked<T>(path: string | undefined, period: number, read: typeof get = get): Asked<T> {
  const [answer, setAnswer] = useState<{ path?: string; value?: T; error?: ApiError }>({});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === undefined) return;
    const abort = new AbortController();
    let timer = 0;
    const ask = async () => {
      if (!document.hidden) {
        try {
          setAnswer({ path, value: await read<T>(path, abort.signal) });
        } catch (error) {
          if (abort.signal.aborted) return;
          const failed = asError(error);
          setAnswer((known) => (known.path === path && known.value !== undefined ? { ...known, error: failed } : { path, error: failed }));
          if (failed.status === 401) return;
        }
      }
      if (period > 0 && !abort.signal.aborted) timer = setTimeout(ask, period);
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [path, period, turn]);
  const current = answer.path === path ? answer : {};
  return { value: current.value, error: current.error, again: () => setTurn((turn) => turn + 1) };
}

export interface Live {
  now: Now | undefined;
  /// Rate of events and of those that were stopped, one a second.
  history: { at: number; rate: number; stopped: number }[];
  error: ApiError | undefined;
}

/// How many seconds of the chart are kept.
const KEPT = 600;

/// Follows what hooks do now, and again when the connection is lost.
export function useLive(): Live {
  const [live, setLive] = useState<Live>({ now: undefined, history: [], error: undefined });
  const before = useRef<Now | undefined>(undefined);
  useEffect(() => {
    const abort = new AbortController();
    const take = (data: unknown) => {
      const now = data as Now;
      const last = before.current;
      before.current = now;
      setLive((known) => {
        const seconds = last ? (now.watched_ms - last.watched_ms) / 1000 : 0;
        if (!last || seconds <= 0) return { ...known, now, error: undefined };
        const since = (total: number, former: number) => Math.max(0, (total - former) / seconds);
        const point = { at: Date.now(), rate: since(now.events.total, last.events.total), stopped: since(stopped(now), stopped(last)) };
        return { now, history: [...known.history, point].slice(-KEPT), error: undefined };
      });
    };
    const run = async () => {
      while (!abort.signal.aborted) {
        let error = new ApiError(0, "ended", "the daemon has closed the connection", "it may be stopped, or being replaced");
        try {
          await follow("/v1/now", "now", take, abort.signal);
        } catch (failed) {
          error = asError(failed);
        }
        if (abort.signal.aborted) return;
        setLive((known) => ({ ...known, error }));
        if (error.status === 401) return;
        await new Promise((resolve) => setTimeout(resolve, 2000));
      }
    };
    void run();
    return () => abort.abort();
  }, []);
  return live;
}

export function stopped(now: Now): number {
  return now.events.verdicts.block + now.events.verdicts.halt;
}

/// The address after `#`: a path, and a query.
export interface Place {
  path: string[];
  query: URLSearchParams;
}

export function place(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const decoded = (part: string) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

export function usePlace(): Place {
  const [current, setCurrent] = useState(place());
  useEffect(() => {
    const changed = () => setCurrent(place());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return current;
}

export function address(path: string[], query?: Record<string, string>): string {
  const set = Object.entries(query ?? {}).filter(([, value]) => value !== "");
  const text = set.length > 0 ? `?${new URLSearchParams(set)}` : "";
  return `#/${path.map(encodeURIComponent).join("/")}${text}`;
}
