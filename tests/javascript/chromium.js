// Unpacks the headless Chromium of the package @sparticuz/chromium below node_modules, once.
// Prints JSON with the paths of the browser, its fonts, and libraries that a slim system lacks.
import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const packages = fileURLToPath(new URL("node_modules/", import.meta.url));
const home = join(packages, ".chromium");

if (!readdirSync(packages).includes(basename(home))) {
  const scratch = `${home}-${process.pid}`;
  mkdirSync(scratch);
  process.env.TMPDIR = scratch; // the package unpacks into this directory
  const { inflate } = await import("@sparticuz/chromium");
  const archives = join(packages, "@sparticuz", "chromium", "bin");
  for (const name of ["chromium.br", "fonts.tar.br", "al2023.tar.br"]) {
    await inflate(join(archives, name));
  }
  try {
    renameSync(scratch, home); // atomic, so that no incomplete directory remains
  } catch { // another process was first
    rmSync(scratch, { recursive: true });
  }
}
console.log(JSON.stringify({
  browser: join(home, "chromium"),
  fonts: join(home, "fonts", "fonts"),
  libraries: join(home, "al2023", "lib"),
}));
