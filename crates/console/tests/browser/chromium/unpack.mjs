// Unpacks the Chromium of the npm package, with the libraries and fonts that it needs, into TMPDIR, and prints the path of a script
// that starts it. For machines on which no package of the system can be installed.

import { chmod, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

// The package unpacks its libraries only where this says that the system lacks them.
process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs22.x";
const { default: chromium } = await import("@sparticuz/chromium");

const program = await chromium.executablePath();
const start = join(tmpdir(), "start-chromium");
const [libraries, fonts] = [join(tmpdir(), "al2023", "lib"), join(tmpdir(), "fonts")];
await writeFile(start, `#!/bin/sh\nLD_LIBRARY_PATH='${libraries}' FONTCONFIG_PATH='${fonts}' exec '${program}' "$@"\n`);
await chmod(start, 0o755);
console.log(start);
