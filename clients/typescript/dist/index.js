/** A client of hookyard, which runs hooks for AI-agent hosts: reports what is about to happen, and gets one verdict. */
import { Hookyard } from "./hookyard.js";
import { HttpDoor } from "./http.js";
import { LinesDoor } from "./lines.js";
import { defaultSocket } from "./socket.js";
export { Hookyard } from "./hookyard.js";
export { Events } from "./events.js";
export { fake, FakeHookyard } from "./fake.js";
export { Problem } from "./problem.js";
export * from "./schema.js";
/** A client of the daemon at an address. A daemon that is away is no error here: each event says so. */
export async function connect(options = {}) {
    const { lines, socket, url, token, ...rest } = options;
    return new Hookyard(doorOf({ lines, socket, url, token }), rest);
}
function doorOf({ lines, socket, url, token }) {
    if ([lines, socket, url].filter((given) => given !== undefined).length > 1) {
        throw new TypeError("give one of `lines`, `socket` and `url`");
    }
    if (token !== undefined && url === undefined)
        throw new TypeError("a `token` goes with a `url`");
    if (url !== undefined)
        return new HttpDoor(httpUrl(url), typeof token === "string" ? () => token : token);
    if (socket !== undefined)
        return new HttpDoor(socket);
    const path = lines ?? process.env.HOOKYARD_LISTEN_LINES;
    return path ? new LinesDoor(path) : new HttpDoor(defaultSocket());
}
function httpUrl(url) {
    const read = new URL(url);
    if (read.protocol !== "http:" && read.protocol !== "https:") {
        throw new TypeError(`${read} is not the URL of a daemon, such as http://127.0.0.1:8787`);
    }
    return read;
}
