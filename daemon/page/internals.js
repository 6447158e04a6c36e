// How the tracker of this node works: cycles, filters, marks, journal, snapshots, peers, kernel events.

import { get } from './api.js';
import { ago, bar, facts, h, name, state, table } from './dom.js';
import { bytes, count, duration, percent } from './format.js';
import { part, show_parts } from './part.js';

const ok = (is_ok, error) => (is_ok ? state('good', 'ok') : state('bad', error ?? 'failed'));

function summary(status) {
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
      ['Failed snapshots', count(snapshot.failures)])));
}

function peers(status) {
  const kinds = { up: 'good', down: 'bad', unknown: 'unknown' };
  const rows = status.peers.map((peer) => [name(peer.name ?? '(unknown)'), state(kinds[peer.state], peer.state), ago(peer.last_seen),
    name(peer.url), peer.error ? name(peer.error) : '–']);
  rows.unshift([[name(status.node), ' (this node)'], state('good', 'up'), `started ${duration(status.uptime_s)} ago`, '–', '–']);
  return table(`Peers in cluster ${status.cluster}`,
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
  return table('Snapshots', [{ title: 'Drive' }, { title: 'Snapshot' }],
    status.snapshot.drives.map((drive) => [name(drive.path), ok(drive.ok, drive.error)]));
}

function writers(status) {
  if (status.writers.length === 0) return null;
  return table('Writers', [{ title: 'Writer' }, { title: 'Marks accepted', number: true }, { title: 'Last' }],
    status.writers.map((writer) => [name(writer.identity), count(writer.accepted), ago(writer.last_at)]));
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

const tracker = () => part('tracker', null, async () => {
  const status = await get('/v1/status');
  return [summary(status), cycles(status), peers(status), drives(status), watch(status), membership(status), writers(status),
    h('p', { class: 'help' }, `spoord ${status.version}, instance ${status.instance}`)];
});

export const show_internals = (view) => show_parts(view, 'Internals', [tracker()]);
