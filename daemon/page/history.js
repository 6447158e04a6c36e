// The totals of one directory over time.

import { get, node_now } from './api.js';
import { ago, h, notice, table, time } from './dom.js';
import { bytes, count, moment } from './format.js';
import { explain } from './part.js';

const height_px = 260;
const samples = 12;  // of the cluster
const day_ms = 24 * 3600 * 1000;
const spans_ms = { '24h': day_ms, '7d': 7 * day_ms, '30d': 30 * day_ms };

const steps_of_bytes = Array.from({ length: 70 }, (_, i) => 2 ** i);

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// A point is valid until the next one: the last one until now.
function columns_of(points) {
  const column = (key) => [...points.map((point) => point[key]), points.at(-1)[key]];
  const at = points.map((point) => Date.parse(point.at) / 1000);
  return [[...at, Math.max(at.at(-1) + 1, node_now() / 1000)], column('bytes'), column('allocated'), column('files')];
}

const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const hour = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
function time_axis(_, ticks) {
  const format = ticks.at(-1) - ticks[0] < (2 * day_ms) / 1000 ? hour : day;
  const texts = ticks.map((tick) => format.format(new Date(tick * 1000)));
  return texts.map((text, i) => (text === texts[i - 1] ? '' : text));
}

function chart(box, points, show_values) {
  const stepped = uPlot.paths.stepped({ align: 1 });
  const axis = (scale, side, format, incrs) => ({
    scale, side, incrs, stroke: color('--text'), size: 76, grid: { show: side === 3, stroke: color('--line') },
    ticks: { stroke: color('--line') }, values: (_, ticks) => ticks.map(format),
  });
  const line = (label, scale, name, dash) => ({ label, scale, stroke: color(name), width: 2, dash, paths: stepped, points: { show: false } });
  return new uPlot({
    width: box.clientWidth, height: height_px, legend: { show: false }, cursor: { drag: { x: false, y: false } },
    hooks: { setCursor: [({ cursor }) => show_values(cursor.idx ?? null)] },
    scales: { bytes: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] }, files: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
    axes: [
      { stroke: color('--text'), grid: { stroke: color('--line') }, ticks: { stroke: color('--line') }, values: time_axis },
      axis('bytes', 3, bytes, steps_of_bytes), axis('files', 1, count),
    ],
    series: [{}, line('Size', 'bytes', '--series-1'), line('Allocated', 'bytes', '--series-2', [8, 4]), line('Files', 'files', '--series-3', [2, 4])],
  }, columns_of(points), box);
}

function data_table(points) {
  const number = true;
  const event = (point) => [point.event && point.event + (point.from ? ` from ${point.from}` : ''),
    point.complete === false && 'incomplete'].filter(Boolean).join(', ');
  return h('details', { class: 'data' }, h('summary', {}, `The ${count(points.length)} points as a table`),
    table('Totals, newest first',
      [{ title: 'Since' }, { title: 'Size', number }, { title: 'Allocated', number }, { title: 'Files', number }, { title: 'Directories', number }, { title: 'Event' }],
      [...points].reverse().map((point) => [time(point.at, moment(point.at)), bytes(point.bytes), bytes(point.allocated), count(point.files), count(point.dirs), event(point)])));
}

// The cursor follows the mouse, and the arrow keys.
function draw(container, points, history_since) {
  const [first, last] = [points[0], points.at(-1)];
  const values = h('p', { class: 'values', id: 'values' });
  const show_values = (at) => {
    const point = at === null ? last : points[Math.min(at, points.length - 1)];
    values.textContent = `${moment(point.at)}: ${bytes(point.bytes)}, allocated ${bytes(point.allocated)}, ${count(point.files)} files`;
  };
  const box = h('div', { class: 'chart', role: 'group', tabindex: '0', 'aria-describedby': 'values',
    'aria-label': `Size over time: ${bytes(first.bytes)} on ${moment(first.at)}, ${bytes(last.bytes)} since ${moment(last.at)}. The arrow keys move between the points; the table below has all.` });
  container.replaceChildren(
    h('p', { class: 'legend', 'aria-hidden': 'true' },
      h('span', { class: 'line series-1' }, 'Size'), h('span', { class: 'line series-2' }, 'Allocated'), h('span', { class: 'line series-3' }, 'Files (right)')),
    box, values,
    history_since ? h('p', { class: 'help' }, 'History is kept since ', ago(history_since), '.') : '',
    data_table(points));
  show_values(null);
  let plot = chart(box, points, show_values);
  box.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    values.setAttribute('role', 'status');  // to be read out, but not while the mouse moves
    const at = Math.min(points.length - 1, Math.max(0, (plot.cursor.idx ?? points.length) + step));
    plot.setCursor({ left: plot.valToPos(plot.data[0][at], 'x'), top: height_px / 2 });
  });
  new ResizeObserver(() => {
    if (box.clientWidth > 0 && box.clientWidth !== plot.width) plot.setSize({ width: box.clientWidth, height: height_px });
  }).observe(box);
  matchMedia('(prefers-color-scheme: dark)').onchange = () => {  // the canvas has no variables
    if (!box.isConnected) return;
    plot.destroy();
    plot = chart(box, points, show_values);
  };
}

async function of_node({ path, since }) {
  return get('/v1/usage/history', { path, since: since === 'none' ? null : since });
}

// The daemon adds up the nodes at one time: totals now, less the growth since.
async function of_cluster({ path, since }, is_latest) {
  const now = node_now();
  const points = new Map();
  let begin = now - (spans_ms[since] ?? spans_ms['30d']);
  let history_since = null;
  for (let i = 0; i < samples && is_latest(); ++i) {
    const asked = new Date(begin + (i * (now - begin)) / samples).toISOString().replace(/\.\d+/, '');
    const usage = await get('/v1/usage', { path, scope: 'cluster', depth: 0, since: asked, absent: 'empty' });
    history_since = usage.history_since;
    const { growth } = usage;
    if (!growth) break;  // a node keeps no history of it
    if (i === 0 && history_since) begin = Math.max(begin, Math.min(now, Date.parse(history_since)));
    const at = growth.since > asked ? growth.since : asked;
    const then = { at, complete: growth.complete, event: null };
    const last = { at: new Date(now).toISOString(), complete: usage.complete, event: null };
    for (const figure of ['bytes', 'allocated', 'files', 'dirs']) {
      then[figure] = Math.max(0, usage[figure] - growth[figure]);
      last[figure] = usage[figure];
    }
    points.set(at, then);
    if (i === samples - 1) points.set(last.at, last);
  }
  return { history_since, points: [...points.values()].sort((a, b) => Date.parse(a.at) - Date.parse(b.at)) };
}

export async function show_history(container, choice, is_latest) {
  try {
    const { points, history_since } = await (choice.scope === 'cluster' ? of_cluster(choice, is_latest) : of_node(choice));
    if (!is_latest()) return;
    if (points.length === 0) container.replaceChildren(notice('info', 'no history of it is kept, or not on all nodes.'));
    else draw(container, points, history_since);
  } catch (problem) {
    container.replaceChildren(problem.status === 404 ? notice('info', problem.message) : explain(problem));
  }
}
