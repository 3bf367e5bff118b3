/** Where the daemon's socket is, and whose it is. */
import { lstatSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import { down, Problem } from "./problem.js";
const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;
/** The path of the daemon's socket, as the daemon itself chooses it. */
export function defaultSocket() {
    const { HOOKYARD_LISTEN_SOCKET: set, XDG_RUNTIME_DIR: runtime } = process.env;
    return set || (runtime ? `${runtime}/hookyard.sock` : `/tmp/hookyard-${process.geteuid?.()}/hookyard.sock`);
}
/** Throws a `Problem` if another user could have put the socket there: its daemon would decide in the place of ours. */
export function checkSocket(path) {
    let socket;
    try {
        socket = realpathSync(path);
    }
    catch (error) {
        throw down(path, error.code ?? String(error));
    }
    const folder = dirname(socket);
    const [file, directory] = [lstatSync(socket), lstatSync(folder)];
    const trusted = [0, process.geteuid?.()];
    // As with /run/hookyard: root has made the directory for the daemon's user.
    if (areOfRoot(dirname(folder)))
        trusted.push(isOfRoot(directory) ? file.uid : directory.uid);
    let fault;
    if (!trusted.includes(file.uid))
        fault = `belongs to the user ${file.uid}`;
    if (!trusted.includes(directory.uid))
        fault = `is in a directory of the user ${directory.uid}`;
    if (directory.mode & WRITABLE_BY_OTHERS && !(directory.mode & STICKY))
        fault = "is in a directory that others can write to";
    if (fault) {
        const hint = "use a socket in a directory of your own, or of root";
        throw new Problem("untrusted_socket", `the socket ${path} ${fault}`, hint, "never");
    }
}
function isOfRoot({ uid, mode }) {
    return uid === 0 && !(mode & WRITABLE_BY_OTHERS);
}
/** Whether root alone decides about a directory and all above it. */
function areOfRoot(directory) {
    return isOfRoot(lstatSync(directory)) && (directory === "/" || areOfRoot(dirname(directory)));
}
