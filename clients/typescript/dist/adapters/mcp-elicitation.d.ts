/** Questions to the person at a client of the Model Context Protocol, if the client can ask one. */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
export declare class Elicitation {
    #private;
    private readonly client;
    constructor(client: Transport);
    /** Whether a message of the client is the answer to a question. */
    takes({ id, method, params, ...answer }: any): boolean;
    /** Whether the person agrees to a call. */
    agrees(relatedRequestId: any, message?: string): Promise<boolean>;
}
