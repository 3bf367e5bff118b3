/** A session of a client of the Model Context Protocol over streamable HTTP: whatever the client asks has an answer, also at its end. */
import { StreamableHTTPServerTransport, type StreamableHTTPServerTransportOptions } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { IncomingMessage, ServerResponse } from "node:http";
export declare class Session extends StreamableHTTPServerTransport {
    #private;
    readonly started: Promise<void>;
    ending: string;
    usedAt: number;
    /** The requests of HTTP that have no whole answer, and how many of them only listen. */
    inFlight: number;
    constructor(options: StreamableHTTPServerTransportOptions);
    start(): Promise<void>;
    handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void>;
    get onmessage(): ((message: any, extra?: any) => void) | undefined;
    set onmessage(handler: ((message: any, extra?: any) => void) | undefined);
    send(message: any, { relatedRequestId }?: {
        relatedRequestId?: any;
    }): Promise<void>;
    close(): Promise<void>;
}
