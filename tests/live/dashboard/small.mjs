// The dashboard of a small cluster (tests/full/dashboard.sh). What has to happen to the cluster meanwhile is asked for by a
// line on standard output; a line on standard input says that it is done.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';

import { go, openBrowser, openPage, shows, text } from './browser.mjs';

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function ask(what) {
  console.log(what);
  await lines.next();
}

const { URL: url, POOR: poor, TEAM: team, NODE: node, DIRECT: direct } = process.env;
const base = url.split('#')[0];
const browser = await openBrowser();
try {
  const { page, faults } = await openPage(browser, url);

  // Nodes and GPUs, who has them and what they do.
  await shows(page, /GPUs in use\s+24 of 32/);
  await shows(page, new RegExp(`${node}\\s+NVIDIA H200`));
  await shows(page, 'simulated-0002');
  assert.equal(await page.evaluate(() => location.hash), '#/nodes', 'the token leaves the address');
  assert.equal((await page.$$('.list-row .gpu')).length, 32);
  await shows(page, /Held but idle\s+2 GPUs/, '.tiles');
  await page.waitForSelector('.gpu-idle');
  await page.waitForSelector('.chart canvas');
  const shiftOf = () => page.evaluate(() => window.shift);
  const shift = await shiftOf();
  assert.ok(shift < 0.1, `the page moved while it loaded: ${shift}`);

  // One node: each GPU with its holder and figures.
  await go(page, `#/nodes/${node}`);
  await shows(page, /language\/llm-finetune-master-0\s+93 %\s+92 GiB of 140 GiB\s+61 °C\s+612 W/);
  await shows(page, /vision\/resnet-worker-0/);

  // The queue, with the scheduler's sentence.
  await go(page, '#/queue');
  await shows(page, /too-big\s+PyTorchJob in language/);
  await shows(page, /gang too-big: 8 pods x 1 nvidia.com\/gpu need 8 at once/);
  await shows(page, /8 GPUs\s+8 pods/);

  // A job: its ranks, their logs as they are written, events.
  await go(page, '#/jobs');
  await shows(page, /llm-finetune\s+PyTorchJob in language\s+Running\s+4\/4\s+4/);
  await page.click('a[href="#/jobs/language/PyTorchJob/llm-finetune"]');
  await shows(page, /Pods running\s+4 of 4/);
  await shows(page, /master 0\s+llm-finetune-master-0[\s\S]*worker 3\s+llm-finetune-worker-2/, '.ranks');
  await shows(page, /Created pod: llm-finetune-worker-1/, '.events');
  await shows(page, /master 0[\s\S]*step \d+ {2}loss/, '.logs');
  const last = async () =>
    Math.max(...(await text(page, '.logs')).match(/step (\d+)/g).map((step) => Number(step.slice(5))));
  const before = await last();
  await page.waitForFunction(
    (step) =>
      Math.max(
        ...document
          .querySelector('.logs')
          .innerText.match(/step (\d+)/g)
          .map((s) => Number(s.slice(5))),
      ) >
      step + 2,
    { polling: 200 },
    before,
  );
  await page.click('.ranks .list-row:nth-child(2) a'); // only one rank
  await shows(page, /Logs\s+llm-finetune-worker-0/, '.logs');
  await shows(page, /step \d+/, '.log-box');
  assert.doesNotMatch(await text(page, '.log-box'), /worker 2/);

  // What happens is seen without a reload.
  await go(page, '#/nodes');
  await shows(page, /Waiting\s+8 pods\s+for 8 GPUs/, '.tiles');
  const still = await shiftOf();
  await ask('delete-resnet');
  await shows(page, /GPUs in use\s+22 of 32/);
  await ask('start-resnet');
  await shows(page, /GPUs in use\s+24 of 32/);
  const moved = (await shiftOf()) - still;
  assert.ok(moved < 0.1, `the page moved under its reader: ${moved}`);
  await go(page, '#/cost');
  await shows(page, /language\s+(< )?\d+\.\d+\s+4\s/);
  await page.click('.choice button:last-child');
  await shows(page, /llm-finetune\s+pytorchjob in language/);

  // Narrow, and dark: nothing sticks out, nothing is unreadable.
  for (const hash of ['#/nodes', '#/queue', '#/jobs', '#/jobs/language/PyTorchJob/llm-finetune', '#/cost']) {
    await page.setViewport({ width: 390, height: 800 });
    await go(page, hash);
    await page.waitForFunction(
      (wanted) => location.hash === wanted && document.querySelector('main h1') !== null,
      {},
      hash,
    );
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(wide <= 0, `${hash} is ${wide} pixels too wide for a telephone`);
  }
  await page.setViewport({ width: 1280, height: 800 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
  const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(ground, 'rgb(17, 18, 20)');
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }]);

  // Keys.
  await go(page, '#/nodes');
  await shows(page, 'simulated-0000');
  await page.focus('.list-row a');
  await page.keyboard.press('End');
  await page.waitForFunction(() => document.activeElement?.textContent?.includes('simulated-0002'));
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash === '#/nodes/simulated-0002');

  if (process.env.SCREENSHOT) {
    await go(page, '#/nodes');
    await page.evaluate(() => document.activeElement?.blur());
    await new Promise((resolve) => setTimeout(resolve, 40_000)); // only for the looks of its chart
    await page.screenshot({ path: process.env.SCREENSHOT });
  }

  // The server goes, and comes back: the page says so and goes on by itself.
  await go(page, '#/nodes');
  await ask('kill-server');
  await shows(page, /What you see is as it was; trying again/, '.banner');
  await shows(page, /GPUs in use\s+24 of 32/);
  await ask('start-server');
  await page.waitForSelector('.banner', { hidden: true });
  await ask('delete-resnet');
  await shows(page, /GPUs in use\s+22 of 32/);

  assert.deepEqual(faults, []);
  await page.close();

  // Who may see nothing is told what is missing; a token that does not hold is asked for again.
  const refused = await openPage(browser, `${base}#token=${poor}`);
  await shows(
    refused.page,
    /pods is forbidden: User "system:serviceaccount:default:nobody" cannot list resource "pods"/,
    '.banner',
  );
  await shows(refused.page, /This identity may not see nodes/);
  assert.deepEqual(refused.faults, []);
  // Who may see a namespace sees that one.
  const confined = await openPage(browser, `${base}#token=${team}`);
  await shows(confined.page, /This identity may not see nodes/);
  await go(confined.page, '#/jobs/language/PyTorchJob/llm-finetune');
  await shows(confined.page, /Pods running\s+4 of 4/);
  await shows(confined.page, /step \d+/, '.logs');
  await go(confined.page, '#/jobs');
  await shows(confined.page, /too-big/);
  assert.equal(await confined.page.$('.banner'), null);
  assert.deepEqual(confined.faults, []);
  const wrong = await openPage(browser, `${base}#token=wrong`);
  await shows(wrong.page, /The server does not accept the token/);
  await shows(wrong.page, /muster dashboard/);
  assert.deepEqual(wrong.faults, []);

  // The API server has the same page, over TLS.
  const tls = await openPage(browser, `${direct}#${url.split('#')[1]}`);
  await shows(tls.page, /GPUs in use\s+22 of 32/);
  assert.deepEqual(tls.faults, []);
  console.log(`result: the dashboard moved its content by ${shift.toFixed(3)} (0.1 would be felt)`);
} catch (error) {
  console.log('note FAIL in the browser:', error.stack);
  process.exitCode = 1;
} finally {
  await browser.close();
}
process.exit();
