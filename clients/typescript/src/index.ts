/** A client of hookyard, which runs hooks for AI-agent hosts: reports what is about to happen, and gets one verdict. */

import type { Door } from "./door.js";
import { Hookyard, type Options } from "./hookyard.js";
import { HttpDoor } from "./http.js";
import { LinesDoor } from "./lines.js";
import { defaultSocket } from "./socket.js";

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
export async function connect(options: Address & Options = {}): Promise<Hookyard> {
  const { lines, socket, url, token, ...rest } = options;
  return new Hookyard(doorOf({ lines, socket, url, token }), rest);
}

function doorOf({ lines, socket, url, token }: Address): Door {
  if ([lines, socket, url].filter((given) => given !== undefined).length > 1) {
    throw new TypeError("give one of `lines`, `socket` and `url`");
  }
  if (token !== undefined && url === undefined) throw new TypeError("a `token` goes with a `url`");
  if (url !== undefined) return new HttpDoor(httpUrl(url), typeof token === "string" ? () => token : token);
  if (socket !== undefined) return new HttpDoor(socket);
  const path = lines ?? process.env.HOOKYARD_LISTEN_LINES;
  return path ? new LinesDoor(path) : new HttpDoor(defaultSocket());
}

function httpUrl(url: string | URL): URL {
  const read = new URL(url);
  if (read.protocol !== "http:" && read.protocol !== "https:") {
    throw new TypeError(`${read} is not the URL of a daemon, such as http://127.0.0.1:8787`);
  }
  return read;
}
