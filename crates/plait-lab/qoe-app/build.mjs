// Bundles the page into the folder that is given, or with --tests the tests, and runs these.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const [what] = process.argv.slice(2);

async function tests() {
  const folder = mkdtempSync(join(tmpdir(), "plait-qoe-app-"));
  const names = readdirSync(join(here, "tests")).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: names.map((name) => join(here, "tests", name)),
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "warning",
  });
  const files = names.map((name) => join(folder, name.replace(/\.ts$/, ".mjs")));
  const { status } = spawnSync(process.execPath, ["--test", "--test-reporter=spec", ...files], {
    stdio: "inherit",
    cwd: here,
  });
  rmSync(folder, { recursive: true });
  process.exit(status ?? 1);
}

async function page(folder) {
  mkdirSync(folder, { recursive: true });
  await build({
    entryPoints: [join(here, "src/main.ts")],
    outfile: join(folder, "main.js"),
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    // Licences of what is bundled stay in the bundle.
    legalComments: "inline",
    logLevel: "warning",
  });
  for (const name of ["index.html", "style.css", "icon.svg"]) {
    copyFileSync(join(here, name), join(folder, name));
  }
  const licence = join(here, "node_modules/shaka-player/LICENSE");
  copyFileSync(licence, join(folder, "LICENSE-shaka-player.txt"));
}

if (what === "--tests") await tests();
else if (what) await page(what);
else throw new Error("say where to: node build.mjs FOLDER");
