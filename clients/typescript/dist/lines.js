/** The door of lines: many events at the same time on one connection. */
import { isUtf8 } from "node:buffer";
import { connect } from "node:net";
import { LONGEST_ANSWER } from "./door.js";
import { InexactNumber, parse } from "./json.js";
import { badAnswer, closed, daemonError, down, lost } from "./problem.js";
import { checkSocket } from "./socket.js";
/** How long a connection may rest, in milliseconds: the daemon ends it after `limits.idle_timeout`. */
const LONGEST_REST = 30_000;
/** What a daemon may leave unread of a connection, in characters. Further events wait here, where they can be cancelled. */
const MOST_UNSENT = 16 << 20;
/** What is read at once, in bytes. */
const MOST_READ = 64 << 10;
const LINE_FEED = 10;
/** Sends events as lines. */
export class LinesDoor {
    path;
    #connection;
    /** This one, and those that the daemon drains. */
    #open = new Set();
    #isClosed = false;
    constructor(path) {
        this.path = path;
    }
    ask(event, traceparent) {
        try {
            if (this.#isClosed)
                throw closed();
            if (!this.#connection?.takesMore()) {
                this.#connection?.end();
                checkSocket(this.path);
                this.#connection = new Connection(this.path, (ended) => this.#open.delete(ended));
                this.#open.add(this.#connection);
            }
            return this.#connection.send(event, traceparent);
        }
        catch (problem) {
            return { answer: Promise.reject(problem), cancel: () => { } };
        }
    }
    close() {
        this.#isClosed = true;
        for (const connection of this.#open)
            connection.fail(closed());
    }
}
/** One connection, with the events in flight on it. */
class Connection {
    #socket;
    /** By id. An event that was cancelled has an id until it is answered, and nobody waits for it. */
    #flights = new Map();
    /** How many events somebody waits for. While there are any, the process goes on. */
    #awaited = 0;
    #lastId = 0;
    #lastUse = Date.now();
    #isConnected = false;
    #takesMore = true;
    /** What the daemon said about the connection. */
    #farewell;
    /** Lines that are not written yet. */
    #unsent = "";
    /** Events that wait until the daemon has read others, by id. */
    #held = new Map();
    /** What was read last. As a stream, with a buffer for each read, a round trip takes a tenth longer. */
    #input = Buffer.allocUnsafe(MOST_READ);
    /** The beginning of a line. */
    #partial = [];
    #partialBytes = 0;
    constructor(path, ended) {
        const onread = { buffer: this.#input, callback: (bytes) => this.#read(this.#input.subarray(0, bytes)) };
        this.#socket = connect({ path, allowHalfOpen: true, onread });
        this.#socket.unref();
        this.#socket.on("close", () => ended(this));
        this.#socket.on("connect", () => (this.#isConnected = true));
        this.#socket.on("drain", () => this.#release());
        this.#socket.on("end", () => this.fail(lost(this.#farewell ?? "the daemon closed it")));
        this.#socket.on("error", (error) => {
            const why = error.code ?? error.message;
            this.fail(this.#isConnected ? lost(this.#farewell ?? why) : down(path, why));
        });
    }
    takesMore() {
        const rests = this.#flights.size === 0 && Date.now() - this.#lastUse > LONGEST_REST;
        return this.#takesMore && !rests;
    }
    /** Sends no more, and reads the answers that are due. */
    end() {
        this.#takesMore = false;
        for (const line of this.#held.values())
            this.#unsent += line;
        this.#held.clear();
        if (this.#unsent)
            this.#flush();
        this.#socket.end();
    }
    /** Ends the connection, and everything in flight on it. */
    fail(problem) {
        this.#takesMore = false;
        this.#socket.destroy();
        const flights = [...this.#flights.values()];
        this.#flights.clear();
        this.#held.clear();
        for (const waiting of flights)
            waiting?.reject(problem);
    }
    send(event, traceparent) {
        const id = ++this.#lastId;
        // The id first: the daemon can tell it even if the line is too long.
        const headers = traceparent === undefined ? "" : `,"headers":${JSON.stringify({ traceparent })}`;
        const line = `{"id":${id}${headers},"event":${event}}\n`;
        if (this.#held.size > 0 || this.#isFull())
            this.#held.set(id, line);
        else
            this.#write(line);
        if (this.#awaited++ === 0)
            this.#socket.ref();
        const answer = new Promise((resolve, reject) => this.#flights.set(id, { resolve, reject }));
        return { answer, cancel: (reason) => this.#cancel(id, reason) };
    }
    /** Writes what one turn of the event loop sends together. */
    #write(line) {
        if (this.#unsent === "")
            process.nextTick(() => this.#flush());
        this.#unsent += line;
    }
    #flush() {
        this.#socket.write(this.#unsent);
        this.#unsent = "";
    }
    #isFull() {
        return this.#unsent.length + this.#socket.writableLength > MOST_UNSENT;
    }
    #release() {
        for (const [id, line] of this.#held) {
            if (this.#isFull())
                return;
            this.#held.delete(id);
            this.#write(line);
        }
    }
    #cancel(id, reason) {
        const waiting = this.#flights.get(id);
        if (!waiting)
            return;
        if (this.#held.delete(id)) {
            this.#flights.delete(id);
        }
        else {
            this.#flights.set(id, undefined);
            if (this.#takesMore)
                this.#write(`{"cancel":${id}}\n`);
        }
        this.#settle();
        waiting.reject(reason);
    }
    /** Returns whether to read on. */
    #read(chunk) {
        let start = 0;
        for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
            const rest = chunk.subarray(start, end);
            const line = this.#partial.length ? Buffer.concat([...this.#partial, rest]) : rest;
            this.#partial = [];
            this.#partialBytes = 0;
            start = end + 1;
            this.#take(line);
        }
        if (start < chunk.length) {
            this.#partial.push(Buffer.from(chunk.subarray(start)));
            this.#partialBytes += chunk.length - start;
        }
        if (this.#partialBytes > LONGEST_ANSWER)
            this.fail(badAnswer(`it is longer than ${LONGEST_ANSWER} bytes`));
        return true;
    }
    #take(line) {
        this.#lastUse = Date.now();
        const text = line.toString();
        // What is not UTF-8 is read as this letter.
        if (text.includes("\ufffd") && !isUtf8(line))
            return this.fail(badAnswer("it is not UTF-8"));
        let answer;
        let inexact;
        try {
            answer = parse(text);
        }
        catch (error) {
            if (!(error instanceof InexactNumber))
                return this.fail(badAnswer("it is not JSON"));
            // A fault of this event alone.
            inexact = badAnswer(error.message);
            answer = JSON.parse(text);
        }
        const { id, outcome, error, draining } = (answer ?? {});
        if (draining === true)
            return this.end();
        if (id === null && error !== undefined) {
            this.#farewell = daemonError(error).message;
            return this.end();
        }
        const waiting = this.#flights.get(id);
        if (!this.#flights.delete(id))
            return this.fail(badAnswer("its id is that of no event in flight"));
        if (!waiting)
            return;
        this.#settle();
        if (inexact)
            waiting.reject(inexact);
        else if (error !== undefined)
            waiting.reject(daemonError(error));
        else
            waiting.resolve(outcome);
    }
    #settle() {
        if (--this.#awaited === 0)
            this.#socket.unref();
    }
}
