// Builds the page into a directory: `node build.mjs DIRECTORY`. The same sources and the same lock file give the same bytes.
import { build } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";

const [directory] = process.argv.slice(2);
if (!directory) throw new Error("usage: node build.mjs DIRECTORY");
await mkdir(directory, { recursive: true });
await build({
  entryPoints: { app: "src/main.tsx" },
  outdir: directory,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome110", "firefox115", "safari16.4"],
  charset: "utf8",
  legalComments: "inline",
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
});
for (const file of ["index.html", "icon.svg"]) await copyFile(join("src", file), join(directory, file));
