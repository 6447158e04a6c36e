// The page in a real Chromium, with a real spoord and real scans.
//
// Started by run_tests.sh. SPOORD, SPOOR: the programs. PACKAGES: where npm installed its packages. SCREENSHOTS: the
// folder for screenshots. CHROMIUM: /usr/bin/chromium by default.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';

import { hostile_names } from './hostile_names.mjs';
import { Daemon, make_cluster } from './daemon.mjs';

const require = createRequire(join(process.env.PACKAGES, 'package.json'));
const { chromium } = require('playwright-core');
const axe_source = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const screenshots = process.env.SCREENSHOTS;
const between_scans_ms = 1100;  // the history has one point a second
const token = 'a-token-that-only-the-tests-have';
const mark_token = 'a-token-for-the-role-mark-alone';

const launching = {
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
         '--disable-component-update', '--disable-sync'],
};
let browser;
let daemon;

before(async () => {
  if (screenshots) mkdirSync(screenshots, { recursive: true });
  browser = await chromium.launch(launching);
  daemon = new Daemon({ usage: { owners: true } });
  daemon.write(['photos', '2025', 'winter'], 3_000_000);
  daemon.write(['photos', '2026', 'summer'], 8_000_000);
  daemon.write(['photos', '2026', 'autumn'], 2_000_000);
  daemon.write(['backup', 'database'], 5_000_000);
  daemon.write(['logs'], 700_000);
  for (let i = 0; i < 250; ++i) daemon.write(['many', `d${String(i).padStart(3, '0')}`], 100 * (i + 1));
  hostile_names.forEach((name, i) => daemon.write(['hostile', name], 10_000 - 100 * i));
  await daemon.start();
  daemon.run('scan');
  await wait(between_scans_ms);
  daemon.write(['photos', '2026', 'summer'], 9_000_000);
  daemon.write(['brandnew'], 1_000_000);
  daemon.run('mark', 'photos/2026/summer', 'brandnew');
  daemon.run('scan');
});

after(async () => {
  await browser?.close();
  await daemon?.stop();
});

// Opens the place in a browser of its own, and fails if anything was refused by the CSP, thrown, or asked.
async function visit(hash, { of = daemon, width = 1280, scheme = 'light', routes = {}, ...options } = {}, use) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(error.stack));
  page.on('dialog', (dialog) => { complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('console', (message) => {
    const is_status = message.text().startsWith('Failed to load resource: the server responded with a status of');
    if (['error', 'warning'].includes(message.type()) && !is_status) complaints.push(message.text());
  });
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== of.url) complaints.push(`asks another host: ${request.url()}`);
  });
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener('securitypolicyviolation', (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  for (const [path, answer] of Object.entries(routes)) {
    await page.route((url) => url.pathname === path, async (route) => {
      const body = await answer(new URL(route.request().url()), route);
      if (body) await route.fulfill({ status: body.status ?? 200, json: body });
    });
  }
  try {
    await page.goto(`${of.url}/${hash}`);
    await page.waitForSelector('h1');
    await use(page, context);
    assert.deepEqual(await page.evaluate(() => window.violations), [], 'violations of the CSP');
    assert.equal(await page.evaluate(() => window.hacked), undefined, 'a name became code');
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}

// Of a request that a test breaks on purpose, Chromium logs the failure.
function but_for_broken_requests(error) {
  if (!/net::ERR_/.test(error.message)) throw error;
}

async function screenshot(page, name) {
  if (!screenshots) return;
  await page.evaluate(() => new Promise((painted) => { requestAnimationFrame(() => requestAnimationFrame(painted)); }));
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
}

const part_is_there = (page, part) => page.waitForSelector(`[data-part=${part}]:not([aria-busy])`);
const usage_is_there = (page) => page.waitForSelector('[data-section=usage]:not([aria-busy]) #history');
const texts = (page, selector) => page.$$eval(selector, (found) => found.map((each) => each.textContent.trim()));
const names_in_table = (page) => texts(page, 'table.usage tbody th bdi');

async function expect_accessible(page, what) {
  const { violations } = await page.evaluate(`(async () => { ${axe_source}; return axe.run(document, {resultTypes: ['violations']}); })()`);
  assert.deepEqual(violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.target + ' ' + node.failureSummary).join('; ')}`), [], what);
}

describe('headers', () => {
  test('the page has no inline code and may not be framed', async () => {
    const response = await fetch(daemon.url);
    assert.match(response.headers.get('content-security-policy'), /^default-src 'self';.*frame-ancestors 'none'/);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    assert.doesNotMatch(await response.text(), /<script>|<style|style=|\son[a-z]+=/);
  });

  test('a listener may switch the page off', async () => {
    const without = new Daemon({ listen: [{ address: '127.0.0.1', port: 0, page: false, insecure: true }] });
    await without.start();
    try {
      for (const path of ['/', '/page/app.js']) assert.equal((await fetch(without.url + path)).status, 404);
      assert.equal((await fetch(`${without.url}/v1/status`)).status, 200);
    } finally {
      await without.stop();
    }
  });

  test('a frame of another site stays empty', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const refused = page.waitForEvent('console', (message) => /frame-ancestors|X-Frame-Options/.test(message.text()));
    await page.setContent(`<iframe src="${daemon.url}/"></iframe>`);
    await refused;
    await context.close();
  });
});

describe('overview', () => {
  test('has health, capacity, the cluster, limits and the last scans, in this order', () => visit('', {}, async (page) => {
    for (const part of ['health', 'capacity', 'cluster', 'limits', 'last-scans']) await part_is_there(page, part);
    assert.deepEqual(await texts(page, 'h2'), ['Health', 'Capacity', 'Cluster', 'Limits', 'Last scans']);
    assert.deepEqual(await texts(page, 'caption'), ['Drives of this node, the fullest first', 'Nodes, problems first', 'Of this node, newest first']);
    assert.match(await page.textContent('[data-part=health]'), /Nodes1 of 1 reported.*Drives1 of 1 ok.*Nothing is known to be wrong/);
    assert.equal(await page.title(), 'Overview · n1 · Spoor');
    await page.click('[data-part=health] a:has-text("ago")');
    await page.waitForFunction(() => location.hash === '#scans');
  }));

  test('capacity has the file system of each drive, and what is used and free', () => visit('', {}, async (page) => {
    await part_is_there(page, 'capacity');
    const [row] = await texts(page, '[data-part=capacity] tbody tr');
    const figure = String.raw`[\d.]+ [KMGTP]?i?B`;
    assert.match(row, new RegExp(`^${daemon.drive}[a-z0-9]+ [\\d.]+ %${figure}${figure}${figure}●ok$`));
    const [, free] = (await texts(page, '[data-part=capacity] tbody td.number'));
    const { drives: [{ space }] } = await (await fetch(`${daemon.url}/v1/drives`)).json();
    assert.ok(space.used_bytes + space.free_bytes <= space.bytes);
    assert.match(free, new RegExp(`^${figure}$`));
  }));

  test('says what is wrong', async () => {
    const status = await (await fetch(`${daemon.url}/v1/status`)).json();
    status.limits = [{ path: 'photos', scope: 'cluster', bytes: 1000, files: null, growth_per_day: null, exceeded: ['bytes'], current: { bytes: 2000, files: 1, complete: true, growth_per_day: null }, scan: 2 }];
    status.membership.dns = [{ source: 'srv:_spoor._tcp.example', ok: false, error: 'timed out', members: 0 }];
    const { drives } = await (await fetch(`${daemon.url}/v1/drives`)).json();
    drives.push({ ...drives[0], path: '/full', space: { file_system: 'xfs', bytes: 1000, used_bytes: 990, free_bytes: 10 } }, { path: '/gone', ok: false, error: 'no answer', id: null, space: null });
    await visit('', { routes: { '/v1/status': () => status, '/v1/drives': () => ({ drives }), '/v1/usage': () => cluster_usage } }, async (page) => {
      await page.waitForFunction(() => document.querySelectorAll('.findings li').length === 7);
      const found = await texts(page, '.findings li');
      assert.deepEqual(found, [
        '✖node n2 did not report: no answer within 10 s', '✖further nodes may be missing: dns srv:_spoor._tcp.example: timed out', '✖a drive of node n2 is 97 % full: 3 B are free',
        '✖/gone: no answer', '✖/full is 99 % full: 10 B are free', '✖photos exceeds its limit: size', '▲srv:_spoor._tcp.example: timed out']);
      assert.equal(await page.getAttribute('.findings a:has-text("photos")', 'href'), '#usage?path=photos&scope=cluster');
      assert.equal(await page.getAttribute('.findings a:has-text("n2")', 'href'), 'http://10.0.0.2:7420');
      await screenshot(page, 'overview-wrong');
      await expect_accessible(page, 'overview with findings');
    });
  });

  test('each part says that it loads, and shows what it has while another one is slow', () => {
    const held = [];
    const hold = (url, route) => { held.push(route); };
    return visit('', { routes: { '/v1/status': hold, '/v1/drives': hold } }, async (page) => {
      for (const part of ['cluster', 'last-scans']) await part_is_there(page, part);
      assert.deepEqual(await texts(page, '[data-part=limits] .loading'), ['Loading…']);
      assert.deepEqual(await texts(page, '[data-part=capacity] .loading'), ['Loading…']);
      await page.waitForFunction(() => document.querySelector('[data-part=health] .loading').textContent === 'Loading: Drives, Limits, Membership…');
      assert.match(await page.textContent('[data-part=health]'), /Nodes1 of 1 reported.*Last scan.* ago/);
      await page.click('#tabs a:has-text("Usage")');
      await usage_is_there(page);
      await page.click('#tabs a:has-text("Overview")');
      await screenshot(page, 'overview-slow');
      await expect_accessible(page, 'overview that loads');
      for (const route of held.splice(0)) await route.continue();
      for (const part of ['health', 'capacity', 'limits']) await part_is_there(page, part);
      assert.equal(await page.textContent('#node'), 'n1 in default');
    });
  });

  test('a daemon that is away is reported, with the age of the figures', () => {
    let is_away = false;
    const routes = Object.fromEntries(['status', 'scans', 'drives', 'usage'].map((each) =>
      [`/v1/${each}`, (url, route) => { void (is_away ? route.abort() : route.continue()); }]));
    return visit('', { routes }, async (page) => {
      await part_is_there(page, 'capacity');
      is_away = true;
      await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange', { bubbles: true })));
      await page.waitForFunction(() => /does not respond; the figures are of/.test(document.getElementById('connection').textContent));
      assert.ok(await page.$('[data-part=capacity] table'), 'the figures stay');
      is_away = false;
      await page.evaluate(() => { location.hash = '#scans'; });
      await page.waitForFunction(() => /connected/.test(document.getElementById('connection').textContent));
    }).catch(but_for_broken_requests);
  });
});

describe('a cluster of three nodes', () => {
  let nodes = [];
  before(async () => {
    nodes = await make_cluster(3);
    nodes.forEach((node, i) => node.write(['data', `of${i + 1}`], 1_000_000 * (i + 1)));
    for (const node of nodes) await node.start();
    for (const node of nodes) node.run('scan');
    await wait(between_scans_ms);
    nodes[1].write(['data', 'more'], 500_000);
    nodes[1].run('mark', 'data/more');
    nodes[1].run('scan');
  });
  after(() => Promise.all(nodes.map((node) => node.stop())));

  const rows = (page) => page.$$eval('[data-part=cluster] tbody tr', (found) => found.map((row) => [...row.cells].map((cell) => cell.textContent)));

  test('the history is that of the cluster', () => visit('#usage?scope=cluster', { of: nodes[0] }, async (page) => {
    await page.waitForSelector('.chart canvas');
    assert.equal(await page.textContent('#history'), 'History of everything in the cluster');
    await page.click('details.data summary');
    const points = await page.$$eval('details.data tbody tr', (found) => found.map((row) => row.cells[1].textContent));
    assert.equal(points[0], '6.20 MiB', 'the size of all nodes now');
    assert.equal(points.at(-1), '5.72 MiB', 'and then');
    assert.deepEqual(await page.$$eval('table.usage tbody th', (found) => found.map((each) => each.textContent.trim())), ['data']);
  }));

  test('each node has a row, also one that is down', () => visit('', { of: nodes[0] }, async (page) => {
    await part_is_there(page, 'cluster');
    const shown = await rows(page);
    const { version } = await (await fetch(`${nodes[0].url}/v1/status`)).json();
    assert.deepEqual(shown.map((row) => row[0]), ['node1 (this node)', 'node2', 'node3']);
    assert.deepEqual(shown.map((row) => row[2]), ['977 KiB', '2.38 MiB', '2.86 MiB']);
    assert.deepEqual(shown.map((row) => row[3]), ['0 B', '+488 KiB', '0 B']);
    assert.ok(shown.every((row) => /^ [\d.]+ %$/.test(row[4]) && /^\d+ s ago$/.test(row[6]) && row[7] === version && row[8] === '–'), `${shown}`);
    assert.equal(await page.getAttribute('[data-part=cluster] tbody a:has-text("node2")', 'href'), nodes[1].url);
    await nodes.pop().stop();
    await page.reload();
    await page.waitForFunction(() => /2 of 3 reported/.test(document.querySelector('[data-part=health]')?.textContent) && document.querySelector('[data-part=cluster] td'));
    const down = (await rows(page))[0];
    assert.equal(down[1], '✖no response, last figures');
    assert.match(down[8], /refused/);
    assert.match((await texts(page, '.findings li'))[0], /^✖node node3 did not report, its last figures count: /);
    await screenshot(page, 'overview-node-down');
    await expect_accessible(page, 'a node that is down');
  }));
});

describe('internals', () => {
  test('have the cycles, the journal and the filters', () => visit('#internals', {}, async (page) => {
    await part_is_there(page, 'tracker');
    assert.deepEqual(await texts(page, 'h2'), ['Cycle', 'Marks since the start', 'Journal and snapshot']);
    assert.deepEqual(await texts(page, 'caption'), ['Cycles, newest first', 'Peers in cluster default', 'Snapshots', 'Writers']);
  }));
});

describe('scans', () => {
  test('have what they walked, skipped and missed', () => visit('#scans', {}, async (page) => {
    await page.waitForSelector('tbody tr:nth-child(2)');
    const rows = await page.$$eval('tbody tr', (found) => found.map((row) => [...row.cells].map((cell) => cell.textContent.trim())));
    assert.equal(rows[0][0], '2');
    assert.match(rows[0][1], /s ago$/);
    assert.match(rows[0][3], /complete/);
    assert.match(rows[0][4], /^incremental/);
    assert.match(rows[1][4], /^full: .*first scan/);
    // How many count as changed is the scan's to say: one read within a step of the file system's clock counts, too.
    const { scans: [last] } = await (await fetch(`${daemon.url}/v1/scans?limit=1`)).json();
    assert.ok(last.dirs_changed >= 1);
    assert.deepEqual(rows[0].slice(6, 11), ['dirs_skipped', 'dirs_changed', 'dirs_new', 'dirs_deleted', 'missed_changes'].map((name) => `${last[name]}`));
  }));
});

describe('usage', () => {
  test('shows one level, and loads the next one on demand', async () => {
    const asked = [];
    const routes = { '/v1/usage': async (url, route) => { asked.push(url.searchParams); await route.continue(); } };
    await visit('#usage', { routes }, async (page) => {
      await usage_is_there(page);
      assert.deepEqual((await names_in_table(page)).slice(0, 3), ['photos', 'backup', 'many']);
      await page.click('table.usage >> text=photos');
      await page.waitForFunction(() => document.querySelector('table.usage tbody bdi')?.textContent === '2026');
      await page.click('.treemap a:not(.inner):has-text("2026")', { position: { x: 10, y: 8 } });
      await page.waitForFunction(() => document.querySelector('table.usage tbody bdi')?.textContent === 'summer');
      assert.match(await page.textContent('.breadcrumb'), /All\s*photos\s*2026/);
      await page.goBack();
      await page.waitForFunction(() => document.querySelector('table.usage tbody bdi')?.textContent === '2026');
      await page.click('.breadcrumb >> text=All');
      await page.waitForFunction(() => document.querySelector('table.usage tbody bdi')?.textContent === 'photos');
      assert.ok(asked.every((query) => Number(query.get('limit')) <= (Number(query.get('depth')) < 2 ? 200 : 30)));
    });
  });

  test('the areas have the next level in them', () => visit('#usage', {}, async (page) => {
    await usage_is_there(page);
    await page.click('.tile.inner:has-text("2026")');
    await page.waitForFunction(() => location.hash === '#usage?path=photos%2F2026');
  }));

  test('the search finds names at each depth', () => visit('#usage', {}, async (page) => {
    await usage_is_there(page);
    await page.focus('#search');
    await page.keyboard.type('SUMM');
    await page.keyboard.press('Enter');
    await page.waitForSelector('caption:has-text("1 directories below")');
    assert.deepEqual(await names_in_table(page), ['photos/2026/summer']);
    await expect_accessible(page, 'search');
    await page.click('table.usage a');
    await page.waitForFunction(() => location.hash === '#usage?path=photos%2F2026%2Fsummer');
    await page.goBack();
    await page.waitForSelector('caption:has-text("1 directories below")');
    await page.fill('#search', 'no such name');
    await page.keyboard.press('Enter');
    await page.waitForSelector('caption:has-text("0 directories below")');
  }));

  test('the owners have their totals', () => visit('#usage', {}, async (page) => {
    await part_is_there(page, 'owners');
    const { bytes } = await (await fetch(`${daemon.url}/v1/usage?depth=0`)).json();
    assert.match((await texts(page, '[data-part=owners] tbody tr'))[0], new RegExp(`^${process.getuid()}\\d+${(bytes / 2 ** 20).toFixed(1)} MiB100 %`));
  }));

  test('says that it loads, and keeps what it has meanwhile', () => {
    const held = [];
    let is_slow = false;
    const routes = { '/v1/usage': async (url, route) => { if (is_slow) held.push(route); else await route.continue(); } };
    return visit('#usage', { routes }, async (page) => {
      await usage_is_there(page);
      await part_is_there(page, 'owners');
      is_slow = true;
      await page.click('table.usage >> text=photos');
      await page.waitForFunction(() => getComputedStyle(document.querySelector('.controls'), '::after').visibility === 'visible');
      assert.equal((await names_in_table(page))[0], 'photos');
      await expect_accessible(page, 'usage that loads');
      is_slow = false;
      for (const route of held.splice(0)) await route.continue();
      await page.waitForFunction(() => document.querySelector('table.usage tbody bdi')?.textContent === '2026');
      assert.equal(await page.$eval('.controls', (each) => getComputedStyle(each, '::after').visibility), 'hidden');
    });
  });

  test('one type of change can be chosen', () => visit('#usage', {}, async (page) => {
    await usage_is_there(page);
    await page.selectOption('#choose-change', 'new');
    await page.waitForSelector('caption:has-text(": new")');
    assert.deepEqual(await names_in_table(page), ['brandnew']);
    await page.selectOption('#choose-change', 'grown');
    await page.waitForSelector('caption:has-text(": grown")');
    assert.deepEqual(await names_in_table(page), ['photos']);
  }));

  test('values under the cursor are in the locale and the zone of the reader', () => visit('#usage?path=photos', { locale: 'de-DE', timezoneId: 'Asia/Tokyo' }, async (page) => {
    await page.waitForSelector('.chart canvas');
    const { points } = await (await fetch(`${daemon.url}/v1/usage/history?path=photos`)).json();
    const at = new Date(points[0].at).toLocaleString('de-DE', { timeZone: 'Asia/Tokyo', dateStyle: 'medium', timeStyle: 'medium' });
    await page.hover('.u-over', { position: { x: 1, y: 50 } });
    await page.waitForFunction((wanted) => document.getElementById('values').textContent.startsWith(wanted), at);
    assert.match(await page.textContent('#values'), /GMT\+9: 12,4 MiB, allocated/);
    await page.hover('.u-over', { position: { x: 400, y: 50 } });
    await page.focus('.chart');
    for (let i = 0; i < points.length; ++i) await page.keyboard.press('ArrowLeft');
    await page.waitForFunction((wanted) => document.getElementById('values').textContent.startsWith(wanted), at);
    assert.match(await page.$eval('table.usage td.number', (cell) => cell.textContent), /,/);
  }));

  test('is read anew after a scan, and not without one', async () => {
    const own = new Daemon();
    own.write(['a'], 1000);
    await own.start();
    try {
      own.run('scan');
      await visit('#usage', { of: own }, async (page) => {
        await usage_is_there(page);
        const poll = () => page.evaluate(() => document.dispatchEvent(new Event('visibilitychange', { bubbles: true })));
        const row = await page.$('table.usage tbody tr');
        const response = page.waitForResponse((each) => each.url().includes('depth=0&') && !each.url().includes('owners'));
        await poll();
        await response;
        assert.equal(await row.evaluate((each) => each.isConnected), true, 'nothing has moved');
        own.write(['b'], 2000);
        own.run('mark', 'b');
        own.run('scan');
        await page.focus('#search');
        await page.keyboard.type('half a ');
        await poll();
        await page.waitForFunction(() => document.querySelector('table.usage tbody bdi').textContent === 'b');
        await page.keyboard.type('name');
        assert.equal(await page.inputValue('#search'), 'half a name', 'what is typed stays');
        await page.focus('#sort-name');
        own.write(['c'], 3000);
        own.run('mark', 'c');
        own.run('scan');
        await poll();
        await page.waitForFunction(() => document.querySelector('table.usage tbody bdi').textContent === 'c');
        assert.equal(await page.evaluate(() => document.activeElement.id), 'sort-name', 'the focus stays');
      });
    } finally {
      await own.stop();
    }
  });

  test('a table can be exported as CSV', () => visit('#usage?path=hostile', {}, async (page) => {
    await usage_is_there(page);
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#export')]);
    assert.equal(download.suggestedFilename(), 'usage.csv');
    const text = readFileSync(await download.path(), 'utf8');
    assert.match(text, /^path,bytes,allocated,files,dirs,growth_bytes,change,complete\r\n/);
    assert.ok(text.includes('"hostile/""onmouseover=""window.hacked=1"" x=""",9800,'));
    assert.ok(text.includes('"hostile/new\nline",'));
  }));

  test('a name that begins like a formula is text in a CSV', async () => {
    const usage = { ...cluster_usage, nodes: undefined, unknown_sources: undefined, children: [entry('=HYPERLINK("http://x")', 5, null)], rest: undefined };
    await visit('#usage', { routes: { '/v1/usage': () => usage, '/v1/usage/history': () => history } }, async (page) => {
      await usage_is_there(page);
      const [download] = await Promise.all([page.waitForEvent('download'), page.click('#export')]);
      assert.ok(readFileSync(await download.path(), 'utf8').includes(`\r\n"'=HYPERLINK(""http://x"")",5,`));
    });
  });

  test('a link leads to its directory', () => visit('#usage?path=photos%2F2026&since=none&size=files&sort=name', {}, async (page) => {
    await usage_is_there(page);
    assert.deepEqual(await names_in_table(page), ['autumn', 'summer']);
    assert.equal(await page.$eval('#choose-size', (select) => select.value), 'files');
  }));

  test('sorts by each column, and says so', () => visit('#usage?path=many', {}, async (page) => {
    await usage_is_there(page);
    assert.equal(await page.getAttribute('th:has(#sort-bytes)', 'aria-sort'), 'descending');
    const first = async (name) => page.waitForFunction((wanted) => document.querySelector('table.usage tbody bdi')?.textContent === wanted, name);
    await first('d249');
    await page.click('#sort-name');
    await first('d000');
    assert.equal(await page.getAttribute('th:has(#sort-name)', 'aria-sort'), 'ascending');
    await page.click('#sort-name');
    await first('d199');  // of the first 200 by name
    assert.equal(await page.getAttribute('th:has(#sort-name)', 'aria-sort'), 'descending');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'sort-name', 'the focus stays');
  }));

  test('the directories that are not listed are one row and one tile', () => visit('#usage?path=many', {}, async (page) => {
    await usage_is_there(page);
    assert.equal(await page.textContent('table.usage caption'), 'The first 200 of 250 directories');
    assert.equal(await page.textContent('tr.rest th'), '50 other directories ');
    assert.equal(await page.$$eval('.tile.rest', (tiles) => tiles.length), 1);
    await page.click('text=List up to 1,000');
    await page.waitForFunction(() => document.querySelectorAll('table.usage tbody tr').length === 250);
  }));

  test('a directory that is gone is explained', () => visit('#usage?path=nowhere', {}, async (page) => {
    await page.waitForSelector('.notice.bad');
    assert.match(await page.textContent('.notice.bad'), /Error: .*nowhere/);
  }));

  test('the arrow keys move between areas, and Enter opens one', () => visit('#usage', {}, async (page) => {
    await usage_is_there(page);
    assert.equal(await page.$$eval('.treemap [tabindex="0"]', (tiles) => tiles.length), 1, 'one stop of the tab key');
    await page.focus('.treemap [tabindex="0"]');
    const from = await page.evaluate(() => document.activeElement.textContent);
    await page.keyboard.press('ArrowRight');
    const to = await page.evaluate(() => document.activeElement.textContent);
    assert.notEqual(from, to);
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.hash === '#usage?path=photos');
  }));

  test('works by the keyboard alone', () => visit('', {}, async (page) => {
    await part_is_there(page, 'limits');
    const tab_to = async (selector) => {
      for (let i = 0; i < 60; ++i) {
        await page.keyboard.press('Tab');
        if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
      }
      assert.fail(`${selector} is not reached`);
    };
    await tab_to('#tabs a[href="#usage"]');
    await page.keyboard.press('Enter');
    await usage_is_there(page);
    await tab_to('#choose-scope');
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => location.hash === '#usage?scope=cluster' && !document.querySelector('[aria-busy]'));
    assert.equal(await page.evaluate(() => document.activeElement.id), 'choose-scope', 'the focus stays');
    await tab_to('#search');
    await page.keyboard.type('2025');
    await page.keyboard.press('Enter');
    await page.waitForSelector('caption:has-text("1 directories below")');
    await tab_to('#export');
    const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')]);
    assert.match(readFileSync(await download.path(), 'utf8'), /"photos\/2025",3000000,/);
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => /path=photos%2F2025/.test(location.hash));
    await page.waitForSelector('.chart canvas');
    await tab_to('.chart');
    await page.keyboard.press('ArrowLeft');
    await tab_to('details.data summary');
    await page.keyboard.press('Enter');
    await page.waitForSelector('details.data tbody tr');
  }));

  test('all can be reached by the tab key', () => visit('#usage', {}, async (page) => {
    await usage_is_there(page);
    const reached = new Set();
    for (let i = 0; i < 50; ++i) {
      await page.keyboard.press('Tab');
      reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute('href') || document.activeElement.className));
    }
    for (const wanted of ['skip', '#overview', '#scans', '#usage', '#internals', 'search', 'export', 'chart', 'choose-change', 'choose-scope', 'choose-since', 'choose-size', 'sort-name', 'sort-bytes', '#usage?path=photos']) {
      assert.ok(reached.has(wanted), `${wanted} of ${[...reached]}`);
    }
  }));
});

// As the contract has it, whatever this daemon can.
const grown = (bytes, change = 'grown', more = {}) => ({ files: Math.sign(bytes), dirs: 0, bytes, allocated: bytes, since: '2026-11-22T10:00:00Z', change, ...more });
const entry = (path, bytes, growth, more = {}) => ({ path, files: 10, dirs: 1, bytes, allocated: bytes, complete: true, growth, ...more });
const cluster_usage = {
  ...entry('', 100e9, grown(7e9)), complete: false, as_of: '2026-11-23T10:00:00Z', truncated: false,
  children: [
    entry('big', 40e9, grown(15e9)), entry('slow', 20e9, grown(1e9)), entry('still', 12e9, grown(0)), entry('less', 9e9, grown(-1e9)),
    entry('fresh', 8e9, grown(8e9, 'new')), entry('halved', 5e9, grown(-6e9)), entry('moved', 3e9, grown(0, 'renamed', { from: 'old/name' })),
    entry('short', 2e9, null), entry('gone', 0, grown(-10e9, 'deleted'), { files: 0 }),
  ],
  rest: { count: 3, files: 0, dirs: 0, bytes: 1e9, allocated: 1e9, complete: true, growth: grown(1e8) },
  node: { name: 'n1', cluster: 'default', instance: '', version: '1.0.0' },
  nodes: [{ name: 'n1', url: null, version: '1.0.0', fullest_drive: null, growth_bytes: null, bytes: 1, files: 1, ok: true, as_of: '2026-11-23T10:00:00Z', complete: true, error: null },
          { name: 'n2', url: 'http://10.0.0.2:7420', version: null, fullest_drive: { file_system: 'xfs', bytes: 100, used_bytes: 97, free_bytes: 3 }, growth_bytes: null, bytes: null, files: null, ok: false, as_of: null, complete: false, error: 'no answer within 10 s' }],
  unknown_sources: ['dns srv:_spoor._tcp.example: timed out'],
};
const history = {
  path: '', as_of: '2026-11-23T10:00:00Z', history_since: '2026-11-01T00:00:00Z',
  points: Array.from({ length: 20 }, (_, i) => ({ at: `2026-11-${String(i + 1).padStart(2, '0')}T00:00:00Z`, files: 1000 + 40 * i, dirs: 10, bytes: 50e9 + i * i * 1e8, allocated: 52e9 + i * i * 1e8, event: i === 0 ? 'new' : i === 9 ? 'renamed' : null, ...(i === 9 ? { from: 'old/name' } : {}) })),
};
const routes_of_cluster = { '/v1/usage': () => cluster_usage };
const routes_of_node = { '/v1/usage/history': () => history };

describe('growth and history', () => {
  test('growth is said by sign and words, too', () => visit('#usage?scope=cluster', { routes: routes_of_cluster }, async (page) => {
    await usage_is_there(page);
    const growth = Object.fromEntries(await page.$$eval('table.usage tbody tr', (rows) => rows.map((row) => [row.cells[0].textContent.trim(), row.querySelector('.growth').textContent])));
    assert.equal(growth.big, '▲ +14.0 GiB (+60 %)');
    assert.equal(growth.less, '▼ −954 MiB (−10 %)');
    assert.equal(growth.still, '= 0 B');
    assert.equal(growth.fresh, '▲ +7.45 GiB, new');
    assert.equal(growth.gone, '▼ −9.31 GiB, deleted');
    assert.equal(growth.short, 'no history');
    assert.match(Object.keys(growth).find((each) => each.startsWith('moved')), /from old\/name/);
    assert.equal(await page.$('a:has-text("gone")'), null, 'a deleted directory is no link');
    assert.ok(await page.$('.tile.grown-much'));
    await page.waitForSelector('.chart canvas');
    await screenshot(page, 'cluster-light');
    await expect_accessible(page, 'cluster');
  }));

  test('a node that did not report its totals is named', () => visit('#usage?scope=cluster', { routes: routes_of_cluster }, async (page) => {
    await usage_is_there(page);
    const notices = await texts(page, '.notice.bad');
    assert.match(notices[0], /1 of 2 nodes did not report their totals.*n2: excluded: no answer within 10 s/);
    assert.match(notices[1], /srv:_spoor\._tcp\.example/);
    assert.match(await page.textContent('.totals .facts'), /Sizeat least 93\.1 GiB/);
  }));

  test('a daemon without history says so', () => visit('#usage', { routes: { '/v1/usage/history': () => ({ type: 'about:blank', title: 'Not Found', status: 404, code: 'no_history', detail: 'no history is kept' }) } }, async (page) => {
    await page.waitForFunction(() => /no history is kept$/.test(document.querySelector('main').textContent.trim()));
    assert.equal((await names_in_table(page))[0], 'photos');
  }));

  test('the points of the chart are a table, too', () => visit('#usage', { routes: routes_of_node }, async (page) => {
    await page.waitForSelector('.chart canvas');
    await page.click('details.data summary');
    assert.equal(await page.$$eval('details.data tbody tr', (rows) => rows.length), 20);
    assert.match(await page.textContent('details.data tbody'), /renamed from old\/name/);
  }));

  test('the chart follows the width and the colours', () => visit('#usage', { routes: routes_of_cluster, scheme: 'dark' }, async (page) => {
    await page.waitForSelector('.chart canvas');
    await screenshot(page, 'cluster-dark');
    await expect_accessible(page, 'cluster, dark');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 360, height: 800 });
    await page.waitForFunction(() => document.querySelector('.uplot').clientWidth <= 360);
    await screenshot(page, 'cluster-narrow');
  }));
});

describe('hostile names', () => {
  test('are text in table, treemap, links and titles', () => visit('#usage?path=hostile', {}, async (page) => {
    await usage_is_there(page);
    const shown = await names_in_table(page);
    assert.equal(shown.length, hostile_names.length);
    for (const text of shown) assert.doesNotMatch(text, /[\p{Cc}\p{Cf}]/u);
    assert.ok(shown.includes('<img src=x onerror=window.hacked=1>'));
    assert.ok(shown.includes('a\\u{202e}gnp.exe'));
    assert.ok(shown.includes('x'.repeat(255)));
    assert.ok(shown.includes('new\\u{a}line'));
    assert.ok(shown.some((text) => text.includes('\ufffd')));
    assert.equal(await page.$('main img, main script, main svg, main style'), null);
    for (const title of await page.$$eval('[title],[aria-label]', (found) => found.map((each) => `${each.title}${each.ariaLabel}`))) {
      assert.doesNotMatch(title, /[\u202a-\u202e\u2066-\u2069\u0000-\u0009\u000b-\u001f]/);
    }
    await screenshot(page, 'hostile');
    await expect_accessible(page, 'hostile names');
  }));

  test('each can be opened by its link', () => visit('#usage?path=hostile', {}, async (page) => {
    await usage_is_there(page);
    const links = await page.$$eval('table.usage tbody th a', (found) => found.map((each) => each.getAttribute('href')));
    assert.equal(links.length, hostile_names.length);
    for (const link of links) {
      const is_lost = decodeURIComponent(link).includes('\ufffd');
      await page.evaluate((to) => { location.hash = to; }, link);
      await page.waitForFunction(() => document.querySelector('.breadcrumb').textContent.startsWith('Allhostile') && document.querySelectorAll('.breadcrumb li').length === 3);
      await page.waitForSelector(is_lost ? '.notice.bad' : 'tr.rest');
      if (is_lost) assert.match(await page.textContent('.notice.bad'), /not UTF-8/);
      await page.evaluate(() => { location.hash = '#usage?path=hostile'; });
      await page.waitForFunction(() => document.querySelectorAll('.breadcrumb li').length === 2 && document.querySelector('table.usage'));
    }
  }));

  test('of nodes, writers and errors are text as well', async () => {
    const status = await (await fetch(`${daemon.url}/v1/status`)).json();
    const evil = '"><script>window.hacked=1</script>\u202e\n';
    status.peers = [{ name: evil, url: evil, state: 'down', last_seen: null, error: evil }];
    status.writers = [{ identity: evil, accepted: 1, last_at: '2026-01-01T00:00:00Z' }];
    const usage = { ...cluster_usage, nodes: [{ ...cluster_usage.nodes[1], name: evil, version: evil, url: 'javascript:window.hacked=1', error: evil }], unknown_sources: [evil] };
    const drives = [{ path: evil, ok: false, error: evil, id: null, space: { file_system: evil, bytes: 1, used_bytes: 1, free_bytes: 0 } }];
    status.snapshot.drives = drives;
    const routes = { '/v1/status': () => ({ ...status, node: evil, cluster: evil }), '/v1/usage': () => usage, '/v1/drives': () => ({ drives }) };
    await visit('', { routes }, async (page) => {
      for (const [hash, part] of [['#overview', 'last-scans'], ['#internals', 'tracker']]) {
        await page.evaluate((to) => { location.hash = to; }, hash);
        await part_is_there(page, part);
        assert.equal(await page.$('main script, [href^="javascript"]'), null);
        assert.doesNotMatch(await page.textContent('body'), /\u202e/);
      }
    });
  });
});

describe('sign-in', () => {
  let guarded;
  before(async () => {
    guarded = new Daemon();
    for (const [name, text] of [['read', token], ['mark', mark_token]]) writeFileSync(join(guarded.folder, name), text);
    guarded.config.auth = { tokens: [{ name: 'page', role: 'read', file: join(guarded.folder, 'read') }, { name: 'app', role: 'mark', file: join(guarded.folder, 'mark') }] };
    guarded.config.listen[0].insecure = false;
    await guarded.start();
  });
  after(() => guarded?.stop());

  const enter = async (page, text) => {
    await page.fill('#token', text);
    await page.keyboard.press('Enter');
  };

  test('a token opens the page until sign-out', () => visit('#scans', { of: guarded }, async (page, context) => {
    assert.equal(await page.textContent('h1'), 'Sign in');
    assert.equal(await page.isVisible('#tabs'), false);
    await screenshot(page, 'sign-in');
    await expect_accessible(page, 'sign-in');
    await enter(page, token);
    await page.waitForSelector('h1:has-text("Scans")');
    const [cookie] = await context.cookies();
    assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite, cookie.path, cookie.value.length], [`spoor_session_${new URL(guarded.url).port}`, true, 'Strict', '/', 64]);
    assert.equal(await page.evaluate(() => document.cookie), '', 'scripts do not see it');
    assert.equal(await page.evaluate((text) => JSON.stringify(localStorage).includes(text), token), false);
    await page.reload();
    await page.waitForSelector('h1:has-text("Scans")');
    const Cookie = `${cookie.name}=${cookie.value}`;
    const Authorization = `Session ${await page.evaluate(() => localStorage.getItem('spoor.session'))}`;
    const ask = async (headers) => (await fetch(`${guarded.url}/v1/status`, { headers })).status;
    assert.deepEqual([await ask({ Cookie, Authorization }), await ask({ Cookie }), await ask({ Authorization })], [200, 401, 401],
      'the cookie goes to every port of the host');
    await page.click('#sign-out');
    await page.waitForSelector('h1:has-text("Sign in")');
    assert.deepEqual(await context.cookies(), []);
    assert.equal(await ask({ Cookie, Authorization }), 401, 'the session has ended at the daemon, too');
  }));

  test('works over TLS', async () => {
    const own = new Daemon();
    const [certificate, key] = ['certificate.pem', 'key.pem'].map((each) => join(own.folder, each));
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1', '-subj', '/CN=n1',
      '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate], { stdio: 'ignore' });
    writeFileSync(join(own.folder, 'read'), token);
    own.config.auth = { tokens: [{ name: 'page', role: 'read', file: join(own.folder, 'read') }] };
    own.config.listen = [{ address: '127.0.0.1', port: 0, tls: { certificate, key, client_ca: certificate } }];
    await own.start();
    try {
      await visit('', { of: own, ignoreHTTPSErrors: true }, async (page, context) => {
        assert.match(own.url, /^https:/);
        await enter(page, token);
        for (const part of ['health', 'capacity', 'limits', 'last-scans']) await part_is_there(page, part);
        assert.equal((await context.cookies())[0].secure, true);
        assert.match(await page.textContent('[data-part=last-scans]'), /has not been scanned yet/);
        await page.reload();
        await part_is_there(page, 'capacity');
      });
    } finally {
      await own.stop();
    }
  });

  test('a wrong token, and one without the role, are refused', () => visit('', { of: guarded }, async (page) => {
    await enter(page, 'short');
    await page.waitForSelector('[role=alert] >> text=16 to 512');
    await enter(page, 'not-a-token-that-anyone-has');
    await page.waitForSelector('[role=alert] >> text=not known');
    await enter(page, mark_token);
    await page.waitForSelector('[role=alert] >> text=role');
    assert.equal(await page.textContent('h1'), 'Sign in');
    assert.ok(!page.url().includes('token'));
  }));

  test('a session that ends leads back to the form', () => visit('', { of: guarded }, async (page, context) => {
    await enter(page, token);
    await page.waitForSelector('h1:has-text("Overview")');
    await context.clearCookies();
    await page.evaluate(() => { location.hash = '#scans'; });
    await page.waitForSelector('h1:has-text("Sign in")');
  }));
});

describe('looks', () => {
  for (const scheme of ['light', 'dark']) {
    for (const [width, kind] of [[1440, 'wide'], [390, 'phone'], [320, 'narrow']]) {
      test(`${scheme}, ${kind}: fits, and has no finding of axe`, () => visit('#overview', { scheme, width }, async (page) => {
        for (const section of ['overview', 'scans', 'internals', 'usage', 'usage?path=photos%2F2026']) {
          await page.evaluate((to) => { location.hash = to; }, `#${section}`);
          await page.waitForFunction((to) => document.querySelector(`[data-section=${to}]:not([aria-busy]) :is(table, #history)`) && !document.querySelector('[data-part][aria-busy]'), section.split('?')[0]);
          if (section.includes('path')) await page.waitForFunction(() => document.querySelectorAll('.breadcrumb li').length === 3);
          assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${section} is too wide`);
          const hidden = await page.$$eval('.scroll', (found) => found.filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.ariaLabel));
          if (kind === 'wide') assert.deepEqual(hidden, [], `${section}: tables that do not fit`);
          await screenshot(page, `${section.replace(/\W+/g, '-')}-${scheme}-${kind}`);
          await expect_accessible(page, `${section} ${scheme} ${kind}`);
        }
      }));
    }
  }

  test('a table that does not fit has a scroll bar, and can be scrolled by keyboard', async () => {
    const with_bars = await chromium.launch({ ...launching, ignoreDefaultArgs: ['--hide-scrollbars'] });
    try {
      const page = await with_bars.newPage({ viewport: { width: 390, height: 900 } });
      await page.goto(`${daemon.url}/#scans`);
      await page.waitForSelector('.scroll');
      const sides = await page.$eval('.scroll', (each) => [each.scrollWidth - each.clientWidth, each.offsetHeight - each.clientHeight]);
      assert.ok(sides[0] > 0 && sides[1] > 2, `${sides}`);
      await page.focus('.scroll');
      await page.keyboard.press('ArrowRight');
      await page.waitForFunction(() => document.querySelector('.scroll').scrollLeft > 0);
    } finally {
      await with_bars.close();
    }
  });

  test('without motion where it is not wanted', () => visit('', { reducedMotion: 'reduce' }, async (page) => {
    await page.waitForSelector('.bar > span', { state: 'attached' });
    assert.equal(await page.$eval('.bar > span', (each) => getComputedStyle(each).transitionDuration), '0s');
  }));
});
