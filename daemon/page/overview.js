// The node at a glance: health, nodes, cycles, filters, storage, limits, kernel events.

import { get, Problem } from './api.js';
import { ago, bar, facts, h, name, show, state, table } from './dom.js';
import { bytes, count, duration, percent, signedBytes } from './format.js';
import { remarks } from './scans.js';

const names = { bytes: 'size', files: 'files', growth_per_day: 'growth a day' };
const names_of = (limits) => limits.map((limit) => names[limit] ?? limit).join(', ');
const ok = (is_ok, error) => (is_ok ? state('good', 'ok') : state('bad', error ?? 'failed'));

// What is wrong, as [kind, text]: the worst first.
export function findings(status, reasons, last_scan) {
  const found = reasons.map((reason) => ['bad', `not ready: ${reason}`]);
  const add = (is_wrong, kind, text) => is_wrong && found.push([kind, text]);
  add(!status.journal.ok, 'bad', `the journal can't be written: ${status.journal.error}`);
  for (const drive of status.snapshot.drives) add(!drive.ok, 'bad', `${drive.path} does not store the snapshot: ${drive.error}`);
  for (const limit of status.limits ?? []) {
    add(limit.exceeded.length > 0, 'bad', `${limit.path || (limit.scope === 'cluster' ? 'the cluster' : 'the node')} exceeds its limit${limit.path && limit.scope === 'cluster' ? ' in the cluster' : ''}: ${names_of(limit.exceeded)}`);
  }
  for (const drive of status.watch?.drives ?? []) add(!drive.ok, 'bad', `${drive.path} is not watched: ${drive.error}`);
  for (const peer of status.peers) add(peer.state === 'down', 'warn', `${peer.name ?? peer.url} is down: ${peer.error}`);
  const { etcd, dns } = status.membership;
  add(etcd && !etcd.ok, 'warn', `etcd: ${etcd?.error}`);
  add(etcd && !etcd.registered, 'warn', 'this node is not registered in etcd');
  for (const source of dns) add(!source.ok, 'warn', `${source.source}: ${source.error}`);
  for (const cycle of status.cycles) add(cycle.saturated, 'warn', `cycle ${cycle.cycle} is saturated: scans walk more than has changed`);
  if (last_scan) for (const [kind, text] of remarks(last_scan)) found.push([kind, `scan ${last_scan.scan}: ${text}`]);
  else add(true, 'warn', 'this node has not been scanned yet');
  return found.sort(([a], [b]) => (a === b ? 0 : a === 'bad' ? -1 : 1));
}

function health(found) {
  return h('section', { class: 'card', 'aria-labelledby': 'health' }, h('h2', { id: 'health' }, 'Health'),
    found.length === 0
      ? h('p', {}, state('good', 'Nothing is known to be wrong.'))
      : h('ul', { class: 'findings' }, found.map(([kind, text]) => h('li', {}, state(kind, text)))));
}

function summary(status, last_scan) {
  const { filters, marks, journal, snapshot, cycle } = status;
  const used = filters.bytes_max > 0 ? filters.bytes / filters.bytes_max : 0;
  return h('div', { class: 'cards' },
    h('section', { class: 'card' }, h('h2', {}, 'Cycle'), facts(
      ['Current', count(cycle.current)], ['Opened', ago(cycle.opened_at)],
      ['Filter memory', bar(used), ` ${bytes(filters.bytes)} of ${bytes(filters.bytes_max)} (${percent(used)})`])),
    h('section', { class: 'card' }, h('h2', {}, 'Marks since the start'), facts(
      ['Accepted', count(marks.accepted)], ['New', count(marks.new)], ['Ignored', count(marks.ignored)],
      ['Rejected requests', count(marks.rejected)])),
    h('section', { class: 'card' }, h('h2', {}, 'Journal and snapshot'), facts(
      ['Journal', ok(journal.ok, journal.error), ` ${bytes(journal.bytes)}, durable on ${journal.durability}`],
      ['Failed writes', count(journal.failures)],
      ['Snapshot', ago(snapshot.saved_at), `, ${bytes(snapshot.bytes)}, generation ${count(snapshot.generation)}`],
      ['Failed snapshots', count(snapshot.failures)])),
    h('section', { class: 'card' }, h('h2', {}, 'Last scan'), last_scan
      ? facts(['Finished', ago(last_scan.finished_at), ` in ${duration(last_scan.duration_s)}`],
          ['Walked', `${count(last_scan.dirs_walked)} of ${count(last_scan.dirs_walked + last_scan.dirs_skipped)} directories`],
          ['Changed, new, deleted', `${count(last_scan.dirs_changed)}, ${count(last_scan.dirs_new)}, ${count(last_scan.dirs_deleted)}`],
          ['Missed changes', count(last_scan.missed_changes)],
          ['Size', `${bytes(last_scan.bytes)} in ${count(last_scan.files)} files`])
      : h('p', {}, 'None yet.')));
}

function nodes(status) {
  const kinds = { up: 'good', down: 'bad', unknown: 'unknown' };
  const rows = status.peers.map((peer) => [name(peer.name ?? '(unknown)'), state(kinds[peer.state], peer.state), ago(peer.last_seen),
    name(peer.url), peer.error ? name(peer.error) : '–']);
  rows.unshift([[name(status.node), ' (this node)'], state('good', 'up'), `started ${duration(status.uptime_s)} ago`, '–', '–']);
  return table(`Nodes of cluster ${status.cluster}`,
    [{ title: 'Node' }, { title: 'State' }, { title: 'Last seen' }, { title: 'URL' }, { title: 'Error' }], rows);
}

function cycles(status) {
  return table('Cycles, newest first',
    [{ title: 'Cycle' }, { title: 'Fill of the filter' }, { title: 'Paths, estimated', number: true },
     { title: 'False positives', number: true }, { title: 'Levels', number: true }, { title: 'Tree marks', number: true },
     { title: 'State' }],
    status.cycles.map((cycle) => [cycle.first_cycle < cycle.cycle ? `${count(cycle.first_cycle)} to ${count(cycle.cycle)}` : count(cycle.cycle), [bar(cycle.density, cycle.saturated ? 'bad' : ''), ` ${percent(cycle.density)}`],
      count(cycle.items), percent(cycle.fp_rate), count(cycle.levels), count(cycle.tree_marks),
      cycle.saturated ? state('warn', 'saturated') : cycle.cycle === status.cycle.current ? state('good', 'open') : 'closed']));
}

function drives(status) {
  return table('Drives', [{ title: 'Drive' }, { title: 'Snapshot' }],
    status.snapshot.drives.map((drive) => [name(drive.path), ok(drive.ok, drive.error)]));
}

function writers(status) {
  if (status.writers.length === 0) return null;
  return table('Writers', [{ title: 'Writer' }, { title: 'Marks accepted', number: true }, { title: 'Last' }],
    status.writers.map((writer) => [name(writer.identity), count(writer.accepted), ago(writer.last_at)]));
}

function limits(status) {
  if (!status.limits?.length) return null;
  const pair = (format, current, limit) => (limit === null ? '–' : `${format(current)} of ${format(limit)}`);
  return table('Limits, as of the last scan',
    [{ title: 'Directory' }, { title: 'State' }, { title: 'Size', number: true }, { title: 'Files', number: true }, { title: 'Growth a day', number: true }],
    status.limits.map((limit) => [[limit.path ? name(limit.path) : '(everything)', limit.scope === 'cluster' ? ' of the cluster' : ''],
      limit.exceeded.length > 0 ? state('bad', `exceeded: ${names_of(limit.exceeded)}`)
        : limit.current.complete ? state('good', 'within') : state('warn', 'within, as far as is known'),
      pair(bytes, limit.current.bytes, limit.bytes), pair(count, limit.current.files, limit.files),
      pair(signedBytes, limit.current.growth_per_day, limit.growth_per_day)]));
}

function membership({ membership: { etcd, dns } }) {
  if (!etcd && dns.length === 0) return null;
  const rows = dns.map((source) => [name(source.source), ok(source.ok, source.error), count(source.members)]);
  if (etcd) rows.unshift(['etcd', ok(etcd.ok && etcd.registered, etcd.error ?? 'this node is not registered'), count(etcd.members)]);
  return table('Sources of members', [{ title: 'Source' }, { title: 'State' }, { title: 'Members', number: true }], rows);
}

function watch({ watch: reported }) {
  if (!reported) return null;
  return [table('Kernel events (spoor-watch)',
    [{ title: 'Drive' }, { title: 'State' }, { title: 'Last gap' }, { title: 'Gaps', number: true }, { title: 'Events', number: true },
     { title: 'Marks', number: true }, { title: 'Pending', number: true }, { title: 'Lag', number: true }],
    reported.drives.map((drive) => [name(drive.path), drive.ok ? ok(true) : [ok(false, drive.error), ' since ', ago(drive.failing_since)],
      drive.last_gap ? [ago(drive.last_gap.at), ': ', name(drive.last_gap.reason)] : 'none', count(drive.gaps),
      count(drive.events), count(drive.marks), count(drive.pending_marks), duration(drive.lag_s)])),
    h('p', { class: 'help' }, reported.reported_at ? ['Reported ', ago(reported.reported_at), '.'] : 'spoor-watch has not reported yet.')];
}

async function last_scan_of_node() {
  try {
    return (await get('/v1/scans', { limit: 1 })).scans[0];
  } catch (problem) {
    if (problem instanceof Problem && problem.code === 'no_scan') return null;
    throw problem;
  }
}

async function reasons_not_ready() {
  try {
    await get('/readyz');
    return [];
  } catch (problem) {
    if (problem instanceof Problem && problem.code === 'not_ready') return problem.reasons;
    throw problem;
  }
}

export async function show_overview(view, status) {
  const [last_scan, reasons] = await Promise.all([last_scan_of_node(), reasons_not_ready()]);
  show(view, h('h1', {}, 'Overview'),
    health(findings(status, reasons, last_scan)), summary(status, last_scan), limits(status), nodes(status), cycles(status),
    drives(status), watch(status), membership(status), writers(status),
    h('p', { class: 'help' }, `spoord ${status.version}, instance ${status.instance}`));
}
