/** Shows an example to whoever starts it, and nothing to a test that imports it. */

import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { connect } from "hookyard-client";

export async function showExample(meta, play) {
  if (realpathSync(process.argv[1] ?? ".") !== fileURLToPath(meta.url)) return;
  const yard = await connect();
  const { ran, told } = await play(yard, [["rm -rf /"], ["ls"]]);
  console.log("ran:", ...ran);
  console.log(["told:", ...told].join("\n  "));
  yard.close();
}
