/** What a client of the Model Context Protocol has asked and not cancelled, until it is answered. */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { ToolCall } from "../events.js";
export interface OpenRequest {
    readonly id: any;
    /** The server gets an id that was not used before: it may answer late to what was cancelled, and clients use ids again. */
    readonly idAtServer: number;
    /** What names it on all connections. */
    readonly callId: string;
    readonly stop: AbortController;
    tool?: ToolCall<any>;
}
export declare class OpenRequests {
    #private;
    private readonly client;
    constructor(client: Transport);
    /** Undefined: the id is in use. */
    begin(id: unknown): OpenRequest | undefined;
    /** Stops what the client cancels. Returns what to tell the server, if it is anything that was asked. */
    cancel({ params, ...message }: any): any;
    /** The request that the server answers, unless it was cancelled. */
    answered(id: unknown): OpenRequest | undefined;
    answer(request: OpenRequest, answer: object): Promise<void>;
    /** Ends a request with an error of the protocol. */
    fail(request: OpenRequest, why: unknown): Promise<void>;
    refuse(id: any, why: unknown): Promise<void>;
}
