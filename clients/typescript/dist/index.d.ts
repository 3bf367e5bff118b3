/** A client of hookyard, which runs hooks for AI-agent hosts: reports what is about to happen, and gets one verdict. */
import { Hookyard, type Options } from "./hookyard.js";
export { Hookyard, type Options } from "./hookyard.js";
export { Events, type CallOptions, type Place, type ToolCall } from "./events.js";
export { fake, FakeHookyard, type FakeAnswer } from "./fake.js";
export type { Door, Flight } from "./door.js";
export type { Outcome } from "./outcome.js";
export { Problem, type Retry } from "./problem.js";
export * from "./schema.js";
/** Where the daemon is: one of these, or none for `HOOKYARD_LISTEN_LINES`, `HOOKYARD_LISTEN_SOCKET` or the default socket. */
export interface Address {
    /** The path of the socket of lines (`listen.lines`): for many events. */
    lines?: string;
    /** The path of the event socket (`listen.socket`). */
    socket?: string;
    /** The address of `listen.tcp`, such as `http://127.0.0.1:8787`. */
    url?: string | URL;
    /** With `url`: the token of `listen.token_file`, or a function that reads it. */
    token?: string | (() => string);
}
/** A client of the daemon at an address. A daemon that is away is no error here: each event says so. */
export declare function connect(options?: Address & Options): Promise<Hookyard>;
