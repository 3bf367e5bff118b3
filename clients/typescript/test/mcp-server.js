/** A server of the Model Context Protocol on standard input and output, for the tests of the proxy. */

import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";

import { shellServer } from "../examples/mcp.js";

const token = "ghp_" + "a1B2".repeat(9);
await shellServer((command) => (command === "cat token" ? `token ${token}` : `ran ${command}`)).connect(new StdioServerTransport());
