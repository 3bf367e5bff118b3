/** Tools and models for the AI SDK that ask hookyard: `const guard = hookyard(yard, { run: "run-1" })`. */
import type { ToolSet } from "ai";
import type { Events, Place } from "../events.js";
export { Refused } from "./ai-sdk-tools.js";
export { haltIn, Halted } from "./shared.js";
/** For one run: tools that ask before they run and about their output, and a middleware for its model that asks before each call. */
export declare function hookyard(yard: Events, place: Place): {
    tools: <T extends ToolSet>(given: T) => T;
    middleware: import("@ai-sdk/provider").LanguageModelV3Middleware;
};
