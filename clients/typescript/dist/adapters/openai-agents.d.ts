/** Tools for the OpenAI Agents SDK that ask hookyard: `new Agent({ tools: guarded(yard, [bash], { run: "run-1" }) })`. */
import type { CallModelInputFilter, FunctionTool } from "@openai/agents";
import type { Events } from "../events.js";
import { type PlaceOf } from "./shared.js";
export { haltIn, Halted } from "./shared.js";
type Tool = FunctionTool<any, any, any>;
/** The tools, each of which asks before it runs, and about its output. `place` may be a function of the context of the run. */
export declare function guarded(yard: Events, tools: Tool[], place: PlaceOf<any>): Tool[];
/** For `callModelInputFilter`: asks before each call of a model. The SDK can only end the run if that is blocked. */
export declare function modelFilter(yard: Events, place: PlaceOf<any>): CallModelInputFilter;
