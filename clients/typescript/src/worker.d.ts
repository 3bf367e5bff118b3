/** What `worker.js` has: that file is copied beside hooks as it is. */

/** A hook: gets the envelope, and returns its output, or nothing if it has no opinion. `signal` is aborted when nobody waits any more. */
export type Hook = (envelope: any, signal: AbortSignal) => object | void | null | Promise<object | void | null>;

/** Serves all events as a worker, and one event otherwise. */
export function serve(hook: Hook): Promise<void>;
