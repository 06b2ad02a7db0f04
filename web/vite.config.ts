import { readFileSync } from 'node:fs';

import { defineConfig, type Plugin } from 'vite';

// The page carries code of others: their licences come with it.
function licences(...packages: string[]): Plugin {
  return {
    name: 'licences',
    generateBundle() {
      const texts = packages.map((name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, 'utf8')}`);
      this.emitFile({ type: 'asset', fileName: 'licences.txt', source: texts.join('\n\n') });
    },
  };
}

// One script, one style, one page: few files, each fetched once (their names are made of their content).
export default defineConfig({
  base: './',
  plugins: [licences('preact', 'uplot')],
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
  },
});
