#!/usr/bin/env node
/** Starts a server of the Model Context Protocol, or connects to one, and asks hookyard about each call of a tool. */
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { randomUUID } from "node:crypto";
import { connect } from "../index.js";
import { bridge } from "./mcp.js";
const [target, ...args] = process.argv.slice(2);
if (!target || target.startsWith("-")) {
    console.error(`usage: hookyard-mcp PROGRAM ARGUMENT…    a server on standard input and output
       hookyard-mcp URL                 a server over HTTP
HOOKYARD_LISTEN_LINES or HOOKYARD_LISTEN_SOCKET says where hookyard is, HOOKYARD_RUN the run of the events,
HOOKYARD_MCP_AUTHORIZATION the header for a URL.`);
    process.exit(2);
}
const { HOOKYARD_RUN: run = randomUUID(), HOOKYARD_MCP_AUTHORIZATION: authorization, ...env } = process.env;
const headers = authorization ? { authorization } : {};
const server = /^https?:/.test(target)
    ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } })
    : new StdioClientTransport({ command: target, args, env: env, stderr: "inherit" });
const client = new StdioServerTransport();
const report = (error) => console.error(`hookyard-mcp: ${error.message}`);
client.onerror = server.onerror = report;
process.stdin.once("end", () => {
    // What ends with it is no error.
    server.onerror = undefined;
    void client.close();
});
const yard = await connect();
await bridge(yard, { run, cwd: process.cwd() }, client, server).catch((error) => {
    report(error);
    process.exitCode = 1;
});
yard.close();
