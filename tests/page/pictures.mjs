// pictures.mjs FOLDER: overview.png and usage.png for the documentation, from a cluster of three nodes, with their drives
// in /srv, that is scanned on seven days: faketime(1) gives the scans the clock of these days.
//
// Started by ./run pictures.

import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { make_cluster } from './daemon.mjs';

const require = createRequire(join(process.env.PACKAGES, 'package.json'));
const { chromium } = require('playwright-core');
const folder = process.argv[2];
const mib = 1 << 20;

const nodes = await make_cluster(3, { usage: { owners: true, limits: [{ path: 'backup', bytes: 20 * mib }, { path: 'photos', bytes: 200 * mib }] } });
nodes.forEach((node, i) => {
  node.drive = `/srv/disk${i + 1}`;
  node.config.drives = [node.drive];
  mkdirSync(node.drive);
});
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });

// What is there on a day, which is how long ago.
function write(node, i, day) {
  for (const year of [2023, 2024, 2025]) {
    for (const month of ['January', 'April', 'July', 'October']) node.write(['photos', `${year}`, month], (year - 2021) * (4 - i) * mib / 3);
  }
  node.write(['photos', '2026', 'October'], 9 * mib);
  node.write(['photos', '2026', 'November'], (8 - day) * mib / 2);
  for (let host = 0; host < 5; ++host) node.write(['backup', `host${host}`, 'weekly'], (host + 4) * mib / 2 + (6 - day) * mib / 10);
  if (day < 3) node.write(['backup', 'database', 'dumps'], 9 * mib);
  for (const app of ['gateway', 'mail', 'search']) node.write(['logs', app], (day + 9) * mib / 4);
  for (const user of ['anna', 'ben', 'chen']) node.write(['home', user], (user.length + i) * mib / 2);
}

try {
  for (const node of nodes) await node.start();
  for (let day = 6; day >= 0; --day) {
    nodes.forEach((node, i) => {
      write(node, i, day);
      node.run('mark', 'photos/2026/November', 'backup/database/dumps', ...[0, 1, 2, 3, 4].map((host) => `backup/host${host}/weekly`), 'logs/gateway', 'logs/mail', 'logs/search');
    });
    for (const node of nodes) {
      const real = node.spoor;
      if (day > 0) node.spoor = ['faketime', '-f', `-${day}d`, ...real];
      node.run('scan');
      node.spoor = real;
    }
  }
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, colorScheme: 'light' });
  for (const [name, hash, wanted] of [['overview', '', '[data-part=last-scans]:not([aria-busy])'], ['usage', '#usage?scope=cluster', '.chart canvas']]) {
    await page.goto(`${nodes[0].url}/${hash}`);
    await page.waitForSelector(wanted);
    await page.waitForSelector('[data-part][aria-busy]', { state: 'detached' });
    await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
  }
} finally {
  await browser.close();
  await Promise.all(nodes.map((node) => node.stop()));
}
