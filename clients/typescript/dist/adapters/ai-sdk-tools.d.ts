/** What tools of the AI SDK take and give, and how the SDK is told that they may not. */
import { type FlexibleSchema, type ModelMessage, type Schema } from "ai";
import type { Outcome } from "../outcome.js";
/** What is thrown in place of an output if hooks say no. The SDK tells the model the message. */
export declare class Refused extends Error {
    name: string;
}
/** Throws `Refused`, or `Halted`, unless a call or its output may go on. */
export declare function check(outcome: Outcome, isAgreed?: boolean): void;
/** A schema whose valid inputs are those that `judge` returns. It throws to refuse one: the SDK then takes the call for invalid. */
export declare function judgedSchema(given: FlexibleSchema<any>, judge: (input: unknown) => Promise<unknown>): Schema<any>;
/** What a tool returns, or the last of what it yields: nobody sees a part of it before hooks do. */
export declare function last(output: any): Promise<unknown>;
/** Whether a person has agreed to a call. */
export declare function isApproved(messages: ModelMessage[], toolCallId: string): boolean;
