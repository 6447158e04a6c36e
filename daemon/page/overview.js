// Storage at a glance: the health of all nodes, capacity, the cluster and its nodes, limits, the last scans.

import { at_most_each_minute, get, Problem } from './api.js';
import { ago, bar, facts, h, name, node_link, notice, state, table } from './dom.js';
import { bytes, count, percent, signedBytes } from './format.js';
import { doubt_of, growth_of } from './growth.js';
import { show_parts, part } from './part.js';
import { brief_columns, brief_row, remarks } from './scans.js';

const since = '7d';
const full_share = 0.95;
const scans_shown = 5;

const names = { bytes: 'size', files: 'files', growth_per_day: 'growth a day' };
const names_of = (limits) => limits.map((limit) => names[limit] ?? limit).join(', ');
const in_cluster = (limit) => (limit.scope === 'cluster' ? 'cluster' : null);
const usage_link = (path, scope, text) => h('a', { href: `#usage?${new URLSearchParams({ ...(path && { path }), ...(scope && { scope }) })}` }, text);

const read_cluster = at_most_each_minute(() => get('/v1/usage', { scope: 'cluster', depth: 0, since, absent: 'empty' }));
const read_drives = at_most_each_minute(async () => (await get('/v1/drives')).drives);
const read_status = () => get('/v1/status');
async function read_scans() {
  try {
    return (await get('/v1/scans', { limit: scans_shown })).scans;
  } catch (problem) {
    if (problem instanceof Problem && problem.code === 'no_scan') return [];
    throw problem;
  }
}
async function read_reasons() {
  try {
    await get('/readyz');
    return [];
  } catch (problem) {
    if (problem instanceof Problem && problem.code === 'not_ready') return problem.reasons;
    throw problem;
  }
}

const share_used = (space) => (space && space.used_bytes + space.free_bytes > 0 ? space.used_bytes / (space.used_bytes + space.free_bytes) : 0);
const is_full = (space) => share_used(space) >= full_share;
const fullness = (space) => (space ? [bar(share_used(space), is_full(space) ? 'bad' : ''), ` ${percent(share_used(space))}`] : '–');
const is_own = (node, usage) => node.url === null && node.name === usage.node.name;
const problem_of = (node) => node.error ?? (node.ok && !node.complete ? 'changes are pending' : null);

// What each source says about the health: a figure, and what is wrong as [kind, ...content].
const health_sources = {
  Nodes: async () => {
    const usage = await read_cluster();
    const { nodes, unknown_sources } = usage;
    const found = nodes.filter((node) => !node.ok).map((node) => ['bad', 'node ', node_link(node.name || node.url || '(unknown)', node.url), ` did not report${node.last_known ? ', its last figures count' : ''}: `, name(node.error ?? 'no response')]);
    for (const source of unknown_sources) found.push(['bad', 'further nodes may be missing: ', name(source)]);
    for (const node of nodes) {
      if (is_full(node.fullest_drive) && !is_own(node, usage)) found.push(['bad', 'a drive of node ', node_link(node.name, node.url), ` is ${percent(share_used(node.fullest_drive))} full: ${bytes(node.fullest_drive.free_bytes)} are free`]);
    }
    const versions = [...new Set(nodes.map((node) => node.version).filter(Boolean))];
    if (versions.length > 1) found.push(['warn', `the nodes run different versions: ${versions.join(', ')}`]);
    return { figure: `${count(nodes.filter((node) => node.ok).length)} of ${count(nodes.length)} reported`, found };
  },
  Drives: async () => {
    const drives = await read_drives();
    const found = drives.filter((drive) => !drive.ok).map((drive) => ['bad', name(drive.path), ': ', name(drive.error ?? 'failed')]);
    for (const drive of drives) {
      if (is_full(drive.space)) found.push(['bad', name(drive.path), ` is ${percent(share_used(drive.space))} full: ${bytes(drive.space.free_bytes)} are free`]);
    }
    return { figure: `${count(drives.filter((drive) => drive.ok).length)} of ${count(drives.length)} ok`, found };
  },
  Limits: async () => {
    const limits = (await read_status()).limits;
    const exceeded = limits.filter((limit) => limit.exceeded.length > 0);
    return {
      figure: limits.length === 0 ? 'none set' : `${count(exceeded.length)} of ${count(limits.length)} exceeded`,
      found: exceeded.map((limit) => ['bad', usage_link(limit.path, in_cluster(limit), limit.path ? name(limit.path) : in_cluster(limit) ? 'the cluster' : 'the node'), ` exceeds its limit: ${names_of(limit.exceeded)}`]),
    };
  },
  'Last scan': async () => {
    const [last] = await read_scans();
    if (!last) return { figure: 'never', found: [] };  // it is among the nodes that did not report
    return {
      figure: h('a', { href: '#scans' }, ago(last.finished_at)),
      found: remarks(last).map(([kind, text]) => [kind, h('a', { href: '#scans' }, `scan ${last.scan}`), `: ${text}`]),
    };
  },
  Tracker: async () => {
    const reasons = await read_reasons();
    return { figure: h('a', { href: '#internals' }, reasons.length === 0 ? 'ready' : 'not ready'), found: reasons.map((reason) => ['bad', 'not ready: ', name(reason)]) };
  },
  Membership: async () => {
    const { peers, membership: { etcd, dns } } = await read_status();
    const sources = [etcd && { source: 'etcd', ...etcd }, ...dns].filter(Boolean);
    const found = sources.filter((each) => !each.ok).map((each) => ['warn', name(each.source), ': ', name(each.error ?? 'failed')]);
    if (etcd && !etcd.registered) found.push(['warn', 'this node is not registered in etcd']);
    return { figure: h('a', { href: '#internals' }, `${count(peers.length)} peers`), found };
  },
};

function health_list(known) {
  const found = [...known.values()].flatMap((each) => each.found).sort(([a], [b]) => (a === b ? 0 : a === 'bad' ? -1 : 1));
  const waiting = Object.keys(health_sources).filter((each) => !known.has(each));
  return [
    facts(...[...known].map(([source, { figure }]) => [source, figure])),
    found.length > 0 ? h('ul', { class: 'findings' }, found.map(([kind, ...content]) => h('li', {}, state(kind, ''), h('span', {}, content)))) : null,
    waiting.length > 0 ? h('p', { class: 'help loading' }, `Loading: ${waiting.join(', ')}…`)
      : found.length === 0 ? h('p', {}, state('good', 'Nothing is known to be wrong.')) : null,
  ];
}

// Each source is shown as soon as it responds.
function health() {
  const known = new Map();
  return part('health', 'Health', async (put) => {
    await Promise.all(Object.keys(health_sources).map(async (source) => {
      let result;
      try {
        result = await health_sources[source]();
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        result = { figure: 'unknown', found: [['warn', `${source}: `, name(problem.message)]] };
      }
      known.set(source, result);
      put(health_list(new Map(Object.keys(health_sources).filter((each) => known.has(each)).map((each) => [each, known.get(each)]))));
    }));
  });
}

const number = true;

const capacity = () => part('capacity', 'Capacity', async () => {
  const drives = [...await read_drives()].sort((a, b) => a.ok - b.ok || share_used(b.space) - share_used(a.space));
  return table('Drives of this node, the fullest first',
    [{ title: 'Drive' }, { title: 'File system' }, { title: 'Full' }, { title: 'Used', number }, { title: 'Free', number }, { title: 'Size', number }, { title: 'State' }],
    drives.map((drive) => [name(drive.path), drive.space?.file_system ?? '–', fullness(drive.space),
      bytes(drive.space?.used_bytes), bytes(drive.space?.free_bytes), bytes(drive.space?.bytes),
      drive.ok ? state('good', 'ok') : state('bad', drive.error ?? 'failed')]));
});

const cluster = () => part('cluster', 'Cluster', async () => {
  const usage = await read_cluster();
  const growth = growth_of(usage, 'bytes', true);
  return [
    facts(['Size', doubt_of(usage), bytes(usage.bytes)], ['Allocated', bytes(usage.allocated)], ['Growth in 7 days', growth.text, usage.growth ? [' since ', ago(usage.growth.since)] : ''],
      ['Files', count(usage.files)], ['Directories', count(usage.dirs)], ['As of', usage.as_of ? ago(usage.as_of) : 'never'],
      ['More', usage_link('', 'cluster', 'usage and history of the cluster')]),
    table('Nodes, problems first',
      [{ title: 'Node' }, { title: 'State' }, { title: 'Size', number }, { title: 'Growth in 7 days', number }, { title: 'Fullest drive' }, { title: 'Files', number }, { title: 'Scanned' }, { title: 'Version' }, { title: 'Problems' }],
      [...usage.nodes].sort((a, b) => a.ok - b.ok || a.complete - b.complete).map((node) => [
        [node_link(node.name || node.url || '(unknown)', node.url), is_own(node, usage) ? ' (this node)' : ''],
        node.ok ? state('good', 'reported') : state('bad', node.last_known ? 'no response, last figures' : 'no figures'),
        bytes(node.bytes), node.growth_bytes === null ? '–' : signedBytes(node.growth_bytes), fullness(node.fullest_drive), count(node.files), ago(node.as_of),
        node.version ? name(node.version) : '–', problem_of(node) ? name(problem_of(node)) : '–'])),
  ];
});

const limits = () => part('limits', 'Limits', async () => {
  const status = await read_status();
  if (status.limits.length === 0) return h('p', { class: 'help' }, 'None: usage.limits of the configuration sets them.');
  const pair = (format, current, limit) => (limit === null ? '–' : `${format(current)} of ${format(limit)}`);
  return table('As of the last scan',
    [{ title: 'Directory' }, { title: 'State' }, { title: 'Size', number }, { title: 'Files', number }, { title: 'Growth a day', number }],
    status.limits.map((limit) => [
      [usage_link(limit.path, in_cluster(limit), limit.path ? name(limit.path) : '(everything)'), in_cluster(limit) ? ' of the cluster' : ''],
      limit.exceeded.length > 0 ? state('bad', `exceeded: ${names_of(limit.exceeded)}`)
        : limit.current.complete ? state('good', 'within') : state('warn', 'within, as far as is known'),
      pair(bytes, limit.current.bytes, limit.bytes), pair(count, limit.current.files, limit.files),
      pair(signedBytes, limit.current.growth_per_day, limit.growth_per_day)]));
});

const last_scans = () => part('last-scans', 'Last scans', async () => {
  const scans = await read_scans();
  if (scans.length === 0) return notice('info', 'this node has not been scanned yet. Run spoor scan.');
  return [table('Of this node, newest first', brief_columns, scans.map(brief_row)), h('p', {}, h('a', { href: '#scans' }, 'All scans'))];
});

export const show_overview = (view) => show_parts(view, 'Overview', [health(), capacity(), cluster(), limits(), last_scans()]);
