/** What a client of the Model Context Protocol has asked and not cancelled, until it is answered. */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { ToolCall } from "../events.js";
interface OpenRequest {
    tool?: ToolCall<any>;
    stop: AbortController;
}
export declare class OpenRequests {
    #private;
    private readonly client;
    constructor(client: Transport);
    has(id: unknown): boolean;
    /** What names a call on all connections. */
    callId(id: unknown): string;
    /** Returns what stops it when the client cancels it. */
    begin(id: unknown, tool?: ToolCall<any>): AbortSignal;
    end(id: unknown): OpenRequest | undefined;
    /** Ends a request with an error of the protocol. */
    fail(id: any, why: unknown): Promise<void>;
    refuse(id: any, why: unknown): Promise<void>;
}
export {};
