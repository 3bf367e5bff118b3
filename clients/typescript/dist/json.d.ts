/** JSON that changes nothing in silence: integers beyond 2^53 are bigints, and what JSON or a number cannot hold is refused. */
/** A number in JSON that would be changed. */
export declare class InexactNumber extends Error {
}
/** Throws an `InexactNumber`, or a `SyntaxError`. */
export declare function parse(text: string): unknown;
/** From now on, libraries in this process, too, read and write JSON without a change to a number. */
export declare function keepNumbers(): void;
/** Throws if a part has no JSON form. */
export declare function stringify(value: unknown): string;
/** Throws if the JSON form of a part of a value, which has no circles, says less than the part, such as that of a `Map`. */
export declare function checkForm(value: unknown): void;
