/** The door of lines: many events at the same time on one connection. */
import { type Door, type Flight } from "./door.js";
/** Sends events as lines. */
export declare class LinesDoor implements Door {
    #private;
    private readonly path;
    constructor(path: string);
    ask(event: string, traceparent: string | undefined): Flight;
    close(): void;
}
