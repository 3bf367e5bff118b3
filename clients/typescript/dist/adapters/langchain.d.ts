/** A middleware for agents of LangChain that asks hookyard: `createAgent({ middleware: [hookyard(yard, { run: "run-1" })] })`. */
import { type ToolCallRequest } from "langchain";
import type { Events } from "../events.js";
import { type PlaceOf } from "./shared.js";
export { haltIn, Halted } from "./shared.js";
/** Asks before each call of a tool, about its output, and before each call of a model. `place` may be a function of the runtime. */
export declare function hookyard(yard: Events, place: PlaceOf<ToolCallRequest["runtime"]>): import("langchain").AgentMiddleware<undefined, undefined, unknown, readonly (import("@langchain/core/tools").ClientTool | import("@langchain/core/tools").ServerTool)[], readonly []>;
