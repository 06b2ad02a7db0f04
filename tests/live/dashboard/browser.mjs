// Chromium for the tests of the dashboard, and what every page of it has to keep to.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(fileURLToPath(new URL('../../../build/tools/puppeteer/', import.meta.url)));
const puppeteer = require('puppeteer-core');

const PATIENCE_MS = 60_000; // of the slowest machine; all waiting ends when what is waited for is there

export async function openBrowser() {
  return puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    acceptInsecureCerts: true, // for the API server's own address: its authority is not the machine's
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking'],
    protocolTimeout: 120_000,
  });
}

// A page that notes what must not happen: errors of scripts, requests to any other origin.
export async function openPage(browser, url) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.setViewport({ width: 1280, height: 800 });
  const faults = [];
  const origin = new URL(url).origin;
  page.on('pageerror', (error) => faults.push(`script: ${error.message}`));
  page.on('console', (message) => {
    // The browser itself reports each failed request so; tests say themselves which may fail.
    if (message.type() === 'error' && !/Failed to load resource|WebSocket connection/.test(message.text()))
      faults.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) faults.push(`request to ${request.url()}`);
    if (request.url().split('#')[0].includes('token')) faults.push('the token is in the address of a request');
  });
  await page.evaluateOnNewDocument(() => {
    window.shift = 0;
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
    }).observe({ type: 'layout-shift', buffered: true });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
    }).observe({ type: 'longtask', buffered: true });
  });
  await page.goto(url);
  return { page, faults };
}

export const text = (page, selector = '#app') => page.$eval(selector, (element) => element.innerText);

// Until the page shows it, whatever it shows before.
export async function shows(page, wanted, selector = '#app') {
  const pattern = wanted instanceof RegExp ? wanted : new RegExp(wanted.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  try {
    await page.waitForFunction(
      (source, flags, where) => {
        const element = document.querySelector(where);
        return element !== null && new RegExp(source, flags).test(element.innerText);
      },
      { polling: 100 },
      pattern.source,
      pattern.flags,
      selector,
    );
  } catch {
    assert.fail(`the page does not show ${pattern} but:\n${await text(page).catch(() => '(nothing)')}`);
  }
}

export async function go(page, hash) {
  await page.evaluate((wanted) => (window.location.hash = wanted), hash);
}
