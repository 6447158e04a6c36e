// The page in a real Chromium, with a real spoord and real scans.
//
// Started by run_tests.sh. SPOORD, SPOOR: the programs. PACKAGES: where npm installed its packages. SCREENSHOTS: the
// folder for screenshots. CHROMIUM: /usr/bin/chromium by default.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { hostile_names } from './hostile_names.mjs';
import { Daemon } from './daemon.mjs';

const require = createRequire(join(process.env.PACKAGES, 'package.json'));
const { chromium } = require('playwright-core');
const axe_source = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const screenshots = process.env.SCREENSHOTS;
const token = 'a-token-that-only-the-tests-have';
const mark_token = 'a-token-for-the-role-mark-alone';

let browser;
let daemon;

before(async () => {
  if (screenshots) mkdirSync(screenshots, { recursive: true });
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
           '--disable-component-update', '--disable-sync'],
  });
  daemon = new Daemon();
  daemon.write(['photos', '2025', 'winter'], 3_000_000);
  daemon.write(['photos', '2026', 'summer'], 8_000_000);
  daemon.write(['photos', '2026', 'autumn'], 2_000_000);
  daemon.write(['backup', 'database'], 5_000_000);
  daemon.write(['logs'], 700_000);
  for (let i = 0; i < 250; ++i) daemon.write(['many', `d${String(i).padStart(3, '0')}`], 100 * (i + 1));
  hostile_names.forEach((name, i) => daemon.write(['hostile', name], 10_000 - 100 * i));
  await daemon.start();
  daemon.run('scan');
  daemon.write(['photos', '2026', 'summer'], 9_000_000);
  daemon.run('mark', 'photos/2026/summer');
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

async function screenshot(page, name) {
  if (!screenshots) return;
  await page.evaluate(() => new Promise((painted) => { requestAnimationFrame(() => requestAnimationFrame(painted)); }));
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
}

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
  test('has health, nodes, cycles and drives, each with its age', () => visit('', {}, async (page) => {
    await page.waitForSelector('caption');
    const captions = await texts(page, 'caption');
    for (const caption of ['Nodes of cluster default', 'Cycles, newest first', 'Drives', 'Writers']) assert.ok(captions.includes(caption), caption);
    assert.deepEqual(await texts(page, 'h2'), ['Health', 'Cycle', 'Marks since the start', 'Journal and snapshot', 'Last scan']);
    assert.match(await page.textContent('main'), /Nothing is known to be wrong/);
    assert.match(await page.textContent('main'), /Finished\d+ s ago in/);
    assert.equal(await page.title(), 'Overview · n1 · Spoor');
  }));

  test('says what is wrong', async () => {
    const status = await (await fetch(`${daemon.url}/v1/status`)).json();
    status.peers = [{ name: 'node2', url: 'http://10.0.0.2:7420', state: 'down', last_seen: '2026-01-01T00:00:00Z', error: 'no answer' }];
    status.limits = [{ path: 'photos', bytes: 1000, files: null, growth_per_day: null, exceeded: ['bytes'], current: { bytes: 2000, files: 1, growth_per_day: null }, scan: 2 }];
    status.journal = { ...status.journal, ok: false, error: 'disk full' };
    status.watch = { reported_at: '2026-01-01T00:00:00Z', drives: [{ path: '/d', ok: true, error: null, last_gap: { at: '2026-01-01T00:00:00Z', reason: 'overflow' }, events: 5, marks: 1, coalesced: 4, gaps: 1, queue_bytes_max: 1, pending_marks: 0, lag_s: 0 }] };
    await visit('', { routes: { '/v1/status': () => status } }, async (page) => {
      await page.waitForSelector('.findings');
      const found = await texts(page, '.findings li');
      assert.deepEqual(found, ["✖the journal can't be written: disk full", '✖photos exceeds its limit: size', '▲node2 is down: no answer']);
      await screenshot(page, 'overview-wrong');
      await expect_accessible(page, 'overview with findings');
    });
  });

  test('a daemon that is away is reported, with the age of the figures', () => {
    let is_away = false;
    const routes = { '/v1/status': (url, route) => { void (is_away ? route.abort() : route.continue()); } };
    return visit('', { routes }, async (page, context) => {
      await page.waitForSelector('caption');
      is_away = true;
      await page.evaluate(() => { location.hash = '#scans'; });
      await page.waitForFunction(() => /does not respond; the figures are of/.test(document.getElementById('connection').textContent));
      is_away = false;
      await page.evaluate(() => { location.hash = '#overview'; });
      await page.waitForFunction(() => /connected/.test(document.getElementById('connection').textContent));
      await context.clearCookies();
    }).catch((error) => {  // Chromium logs the request that was broken on purpose
      if (!/net::ERR_FAILED/.test(error.message)) throw error;
    });
  });
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
      await page.click('.treemap a:has-text("2026")');
      await page.waitForFunction(() => document.querySelector('table.usage tbody bdi')?.textContent === 'summer');
      assert.match(await page.textContent('.breadcrumb'), /All\s*photos\s*2026/);
      await page.goBack();
      await page.waitForFunction(() => document.querySelector('table.usage tbody bdi')?.textContent === '2026');
      await page.click('.breadcrumb >> text=All');
      await page.waitForFunction(() => document.querySelector('table.usage tbody bdi')?.textContent === 'photos');
      assert.ok(asked.every((query) => query.get('depth') === '1' && Number(query.get('limit')) <= 200));
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

  test('all can be reached by the tab key', () => visit('#usage', {}, async (page) => {
    await usage_is_there(page);
    const reached = new Set();
    for (let i = 0; i < 40; ++i) {
      await page.keyboard.press('Tab');
      reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute('href') || document.activeElement.className));
    }
    for (const wanted of ['skip', '#overview', '#scans', '#usage', 'choose-scope', 'choose-since', 'choose-size', 'sort-name', 'sort-bytes', '#usage?path=photos']) {
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
  nodes: [{ name: 'n1', url: null, ok: true, as_of: '2026-11-23T10:00:00Z', complete: true, error: null },
          { name: 'n2', url: 'http://10.0.0.2:7420', ok: false, as_of: null, complete: false, error: 'no answer within 10 s' }],
  unknown_sources: [{ source: 'srv:_spoor._tcp.example', error: 'timed out' }],
};
const history = {
  path: '', as_of: '2026-11-23T10:00:00Z', history_since: '2026-11-01T00:00:00Z',
  points: Array.from({ length: 20 }, (_, i) => ({ at: `2026-11-${String(i + 1).padStart(2, '0')}T00:00:00Z`, files: 1000 + 40 * i, dirs: 10, bytes: 50e9 + i * i * 1e8, allocated: 52e9 + i * i * 1e8, event: i === 0 ? 'new' : i === 9 ? 'renamed' : null, ...(i === 9 ? { from: 'old/name' } : {}) })),
};
const routes_of_cluster = { '/v1/usage': () => cluster_usage, '/v1/usage/history': () => history };

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
    assert.match(await page.textContent('[data-section=usage] > .facts'), /Sizeat least 93\.1 GiB/);
  }));

  test('a daemon without history and cluster shows what it can', () => {
    const refuse = async (url, route) => {
      const unknown = ['scope', 'since'].find((each) => url.searchParams.has(each));
      if (unknown) return { type: 'about:blank', title: 'Bad Request', status: 400, code: 'invalid_request', detail: `the query parameter '${unknown}' is not known here` };
      await route.continue();
      return null;
    };
    const none = () => ({ type: 'about:blank', title: 'Not Found', status: 404, code: 'not_found', detail: 'there is nothing at this path' });
    return visit('#usage?scope=cluster', { routes: { '/v1/usage': refuse, '/v1/usage/history': none } }, async (page) => {
      await usage_is_there(page);
      await page.waitForFunction(() => /keeps no history\.$/.test(document.querySelector('main').textContent.trim()));
      assert.match(await page.textContent('.notice.warn'), /figures of this node alone/);
      assert.equal((await names_in_table(page))[0], 'photos');
    });
  });

  test('the points of the chart are a table, too', () => visit('#usage', { routes: routes_of_cluster }, async (page) => {
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
    await visit('', { routes: { '/v1/status': () => ({ ...status, node: evil, cluster: evil }) } }, async (page) => {
      await page.waitForSelector('caption');
      assert.equal(await page.$('main script'), null);
      assert.doesNotMatch(await page.textContent('body'), /\u202e/);
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
    assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite, cookie.path, cookie.value.length], ['spoor_session', true, 'Strict', '/', 64]);
    assert.equal(await page.evaluate(() => document.cookie), '', 'scripts do not see it');
    assert.equal(await page.evaluate((text) => JSON.stringify(localStorage).includes(text), token), false);
    await page.reload();
    await page.waitForSelector('h1:has-text("Scans")');
    const Cookie = `spoor_session=${cookie.value}`;
    const Authorization = `Session ${await page.evaluate(() => localStorage.getItem('spoor.session'))}`;
    const ask = async (headers) => (await fetch(`${guarded.url}/v1/status`, { headers })).status;
    assert.deepEqual([await ask({ Cookie, Authorization }), await ask({ Cookie }), await ask({ Authorization })], [200, 401, 401],
      'the cookie goes to every port of the host');
    await page.click('#sign-out');
    await page.waitForSelector('h1:has-text("Sign in")');
    assert.deepEqual(await context.cookies(), []);
    assert.equal(await ask({ Cookie, Authorization }), 401, 'the session has ended at the daemon, too');
  }));

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
    for (const [width, kind] of [[1280, 'wide'], [320, 'narrow']]) {
      test(`${scheme}, ${kind}: fits, and has no finding of axe`, () => visit('#overview', { scheme, width }, async (page) => {
        for (const section of ['overview', 'scans', 'usage', 'usage?path=photos%2F2026']) {
          await page.evaluate((to) => { location.hash = to; }, `#${section}`);
          await page.waitForFunction((to) => document.querySelector(`[data-section=${to}]:not([aria-busy]) :is(table, #history)`), section.split('?')[0]);
          if (section.includes('path')) await page.waitForFunction(() => document.querySelectorAll('.breadcrumb li').length === 3);
          assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${section} is too wide`);
          await screenshot(page, `${section.replace(/\W+/g, '-')}-${scheme}-${kind}`);
          await expect_accessible(page, `${section} ${scheme} ${kind}`);
        }
      }));
    }
  }

  test('without motion where it is not wanted', () => visit('', { reducedMotion: 'reduce' }, async (page) => {
    await page.waitForSelector('.bar > span', { state: 'attached' });
    assert.equal(await page.$eval('.bar > span', (each) => getComputedStyle(each).transitionDuration), '0s');
  }));
});
