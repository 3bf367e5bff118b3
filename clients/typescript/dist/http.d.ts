/** The doors of HTTP: the daemon's Unix socket, or an address. Connections are kept for further events. */
import { type Door, type Flight } from "./door.js";
import type { CanonicalEvent } from "./schema.js";
/** Sends events over HTTP. */
export declare class HttpDoor implements Door {
    #private;
    private readonly address;
    private readonly token?;
    /** `address` is the path of a Unix socket or a URL, `token` that of `listen.token_file`. */
    constructor(address: string | URL, token?: (() => string) | undefined);
    ask(event: string, traceparent: string | undefined, from: CanonicalEvent): Flight;
    close(): void;
}
