// Runs the tests that stand beside the code (*_test.ts) with node's own runner: esbuild makes JavaScript of them first, so
// that any node from 18 on will do.
//   node test/run.mjs [NAME...]    those whose path contains one of the words
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { build } from 'esbuild';

const root = resolve(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..');

function* testsIn(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* testsIn(path);
    else if (entry.name.endsWith('_test.ts')) yield path;
  }
}

const words = process.argv.slice(2);
const tests = [...testsIn(join(root, 'src'))].filter(
  (path) => words.length === 0 || words.some((word) => path.includes(word)),
);
if (tests.length === 0) {
  console.error('there are no such tests');
  process.exit(1);
}
const out = mkdtempSync(join(tmpdir(), 'muster-web-test-'));
try {
  await build({
    entryPoints: tests,
    outdir: out,
    outbase: root,
    bundle: true,
    platform: 'node',
    format: 'esm',
    sourcemap: 'inline',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    logLevel: 'warning',
    outExtension: { '.js': '.mjs' },
  });
  const files = tests.map((path) => join(out, path.slice(root.length + 1).replace(/\.ts$/, '.mjs')));
  process.exitCode =
    spawnSync(process.execPath, ['--enable-source-maps', '--test', ...files], { stdio: 'inherit' }).status ?? 1;
} finally {
  rmSync(out, { recursive: true });
}
