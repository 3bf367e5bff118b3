/** A server of streamable HTTP that gives each session of a client a connection to a server of its own. */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { type Server } from "node:http";
/** `run` connects a session to a server, and returns when that has ended. `end` tells the server that its client is done. */
export interface Connection {
    run(client: Transport, session: string): Promise<void>;
    end(): Promise<unknown>;
}
/** Whether a host, with or without a port, is a name of this machine that nobody else can give to another. */
export declare const isLoopback: (host: string) => boolean;
/** Serves `/mcp` to whoever has the token, and without one under names of this machine only. */
export declare function httpServer(connect: () => Connection, token?: string): Server;
