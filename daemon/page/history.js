// The totals of one directory over time.

import { get, node_now, Problem } from './api.js';
import { ago, h, notice, scrollable, time } from './dom.js';
import { bytes, count } from './format.js';

const height_px = 260;

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

function chart(box, points) {
  const stepped = uPlot.paths.stepped({ align: 1 });
  const axis = (scale, side, format, incrs) => ({
    scale, side, incrs, stroke: color('--text'), size: 76, grid: { show: side === 3, stroke: color('--line') },
    ticks: { stroke: color('--line') }, values: (_, ticks) => ticks.map(format),
  });
  const line = (label, scale, name, dash) => ({ label, scale, stroke: color(name), width: 2, dash, paths: stepped, points: { show: false } });
  return new uPlot({
    width: box.clientWidth, height: height_px, legend: { show: false }, cursor: { drag: { x: false, y: false } },
    scales: { bytes: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] }, files: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
    axes: [
      { stroke: color('--text'), grid: { stroke: color('--line') }, ticks: { stroke: color('--line') } },
      axis('bytes', 3, bytes, steps_of_bytes), axis('files', 1, count),
    ],
    series: [{}, line('Size', 'bytes', '--series-1'), line('Allocated', 'bytes', '--series-2', [8, 4]), line('Files', 'files', '--series-3', [2, 4])],
  }, columns_of(points), box);
}

function data_table(points) {
  const head = ['Since', 'Size', 'Allocated', 'Files', 'Directories', 'Event'];
  const event = (point) => [point.event && point.event + (point.from ? ` from ${point.from}` : ''),
    point.complete === false && 'incomplete'].filter(Boolean).join(', ');
  return h('details', { class: 'data' }, h('summary', {}, `The ${count(points.length)} points as a table`),
    scrollable('History', h('table', {},
      h('caption', {}, 'Totals after each scan that changed them, newest first'),
      h('thead', {}, h('tr', {}, head.map((title, i) => h('th', { scope: 'col', class: i > 0 && i < 5 ? 'number' : null }, title)))),
      h('tbody', {}, [...points].reverse().map((point) => h('tr', {},
        h('th', { scope: 'row' }, time(point.at, point.at.replace('T', ' ').replace('Z', ''))),
        [bytes(point.bytes), bytes(point.allocated), count(point.files), count(point.dirs)].map((figure) => h('td', { class: 'number' }, figure)),
        h('td', {}, event(point))))))));
}

function draw(container, points, history_since) {
  const [first, last] = [points[0], points.at(-1)];
  const box = h('div', { class: 'chart', role: 'img',
    'aria-label': `Size over time: ${bytes(first.bytes)} on ${first.at}, ${bytes(last.bytes)} since ${last.at}. The table below has all points.` });
  container.replaceChildren(
    h('p', { class: 'legend', 'aria-hidden': 'true' },
      h('span', { class: 'line series-1' }, 'Size'), h('span', { class: 'line series-2' }, 'Allocated'), h('span', { class: 'line series-3' }, 'Files (right)')),
    box,
    history_since ? h('p', { class: 'help' }, 'History is kept since ', ago(history_since), '.') : '',
    data_table(points));
  let plot = chart(box, points);
  new ResizeObserver(() => {
    if (box.clientWidth > 0 && box.clientWidth !== plot.width) plot.setSize({ width: box.clientWidth, height: height_px });
  }).observe(box);
  matchMedia('(prefers-color-scheme: dark)').onchange = () => {  // the canvas has no variables
    if (!box.isConnected) return;
    plot.destroy();
    plot = chart(box, points);
  };
}

export async function show_history(container, path, since) {
  container.replaceChildren(h('p', { class: 'help' }, 'Loading…'));
  try {
    const { points, history_since } = await get('/v1/usage/history', { path, since });
    if (points.length === 0) container.replaceChildren(notice('info', 'no history is kept in this time.'));
    else draw(container, points, history_since);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    const is_old = problem.status === 404 && problem.code !== 'no_history';
    container.replaceChildren(notice(problem.status === 404 ? 'info' : 'bad',
      is_old ? 'this daemon keeps no history.' : problem.message));
  }
}
