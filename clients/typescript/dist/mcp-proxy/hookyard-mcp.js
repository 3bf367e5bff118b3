#!/usr/bin/env node
/** Starts a server of the Model Context Protocol, or connects to one, and asks hookyard about each call of a tool. */
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "../index.js";
import { bridge } from "../adapters/mcp.js";
import { keepNumbers } from "../json.js";
import { httpServer, isLoopback } from "./http.js";
const USAGE = `usage: hookyard-mcp [OPTION…] PROGRAM ARGUMENT…    a server on standard input and output
       hookyard-mcp [OPTION…] URL                 a server over HTTP
  --listen [HOST:]PORT       serve streamable HTTP at http://HOST:PORT/mcp, in place of standard input and output
  --if-down block | allow    what happens to calls while hookyard is away; the default is block
HOOKYARD_LISTEN_LINES or HOOKYARD_LISTEN_SOCKET says where hookyard is, HOOKYARD_RUN the run of the events,
HOOKYARD_MCP_AUTHORIZATION the header for a URL, HOOKYARD_MCP_TOKEN the token that clients of --listen need.`;
function fail(message) {
    console.error(message);
    process.exit(2);
}
const words = process.argv.slice(2);
const options = {};
while (/^--(listen|if-down)$/.test(words[0] ?? ""))
    options[words.shift()] = words.shift() ?? fail(USAGE);
const { "--listen": listen, "--if-down": ifDown = "block" } = options;
const [target, ...args] = words;
if (!target || target.startsWith("-") || (ifDown !== "block" && ifDown !== "allow"))
    fail(USAGE);
const { HOOKYARD_RUN: run, HOOKYARD_MCP_AUTHORIZATION: authorization, HOOKYARD_MCP_TOKEN: secret, ...env } = process.env;
const token = secret || undefined;
if (token && token.length < 16)
    fail("HOOKYARD_MCP_TOKEN is shorter than 16 characters");
const headers = authorization ? { authorization } : {};
const report = (error) => console.error(`hookyard-mcp: ${error.message}`);
/** A server over HTTP. Where it has ended the session, so does the proxy: the client begins another. */
class RemoteServer extends StreamableHTTPClientTransport {
    async send(...message) {
        await super.send(...message).catch((error) => {
            if (error.code === 404 && this.sessionId !== undefined)
                setImmediate(() => void this.close());
            throw error;
        });
    }
}
const connectServer = () => {
    const server = /^https?:/.test(target)
        ? new RemoteServer(new URL(target), { requestInit: { headers } })
        : new StdioClientTransport({ command: target, args, env: env, stderr: "inherit" });
    server.onerror = report;
    return server;
};
async function serveStdio() {
    const client = new StdioServerTransport();
    const server = connectServer();
    client.onerror = report;
    process.stdin.once("end", () => {
        // What ends with it is no error.
        server.onerror = undefined;
        void client.close();
    });
    await bridge(yard, { run: run ?? randomUUID(), cwd: process.cwd() }, client, server);
}
async function serveHttp(address) {
    const [, host = "127.0.0.1", port] = /^(?:(.+):)?(\d{1,5})$/.exec(address) ?? fail(USAGE);
    if (!isLoopback(host) && !token)
        fail(`${host} can be reached from other machines: set HOOKYARD_MCP_TOKEN to what clients must know, or listen on 127.0.0.1`);
    const http = httpServer(() => {
        const server = connectServer();
        return {
            run: (client, session) => bridge(yard, { run: run ?? session, cwd: process.cwd() }, client, server),
            end: async () => server instanceof RemoteServer && server.terminateSession().catch(report),
        };
    }, token);
    for (const signal of ["SIGINT", "SIGTERM"])
        process.once(signal, () => (http.close(), http.closeAllConnections()));
    http.listen(Number(port), host.replace(/^\[|\]$/g, ""));
    await once(http, "listening");
    console.error(`hookyard-mcp: listening on http://${host}:${http.address().port}/mcp`);
    await once(http, "close");
}
// The SDK reads by the functions of the language, which would round what a server and its guard are to get.
keepNumbers();
const yard = await connect({ ifDown });
await (listen === undefined ? serveStdio() : serveHttp(listen)).catch((error) => {
    report(error);
    process.exitCode = 1;
});
yard.close();
