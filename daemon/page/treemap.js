// The children of a directory as areas. Each is a link; the arrow keys move between them.

import { h, name } from './dom.js';

const tiles_max = 200;
const label_width_px = 64;
const line_px = 17;
const padding_px = 6;

// tiles: [{label, value, href, kind, size, growth}], the largest first.
export function treemap(description, tiles) {
  const box = h('div', { class: 'treemap', role: 'group', 'aria-label': `${description}. The table has the same figures.` });
  let width = 0;
  const layout = () => {
    if (box.clientWidth === width || box.clientWidth === 0) return;
    width = box.clientWidth;
    const focused = box.contains(document.activeElement) ? document.activeElement.dataset.number : null;
    draw(box, joined(tiles), width, box.clientHeight);
    if (focused !== null) box.querySelector(`[data-number="${focused}"]`)?.focus();
  };
  new ResizeObserver(layout).observe(box);
  box.addEventListener('keydown', move_focus);
  return box;
}

// The smallest ones as one tile: more tiles could not be told apart.
function joined(tiles) {
  const shown = tiles.filter((tile) => tile.value > 0);
  const links = shown.filter((tile) => tile.href);
  if (links.length <= tiles_max) return shown;
  const others = links.slice(tiles_max);
  const value = others.reduce((sum, tile) => sum + tile.value, 0);
  return [...links.slice(0, tiles_max), ...shown.filter((tile) => !tile.href),
    { label: `${others.length} smaller ones, see the table`, value, kind: 'rest', size: '', growth: '' }];
}

function draw(box, tiles, width, height) {
  const root = d3.hierarchy({ children: tiles }).sum((tile) => tile.value ?? 0);
  d3.treemap().size([width, height]).paddingInner(2).round(true)(root);
  const leaves = tiles.length > 0 ? root.leaves() : [];
  box.replaceChildren(...leaves.filter((leaf) => leaf.x1 > leaf.x0 && leaf.y1 > leaf.y0).map(element));
  const first = box.querySelector('a');
  if (first) first.tabIndex = 0;
}

// All of its text is its name, whatever has room.
function element({ data: tile, x0, y0, x1, y1 }, number) {
  const [width, height] = [x1 - x0, y1 - y0];
  const lines = [name(tile.label), tile.size, tile.growth].filter(Boolean);
  const visible = width < label_width_px ? 0 : Math.floor((height - padding_px) / line_px);
  return h(tile.href ? 'a' : 'span', {
    class: `tile ${tile.kind}`, href: tile.href, tabindex: tile.href ? '-1' : null, 'data-number': number,
    title: [tile.label, tile.size, tile.growth].filter(Boolean).join(' · '),
    style: { left: `${x0}px`, top: `${y0}px`, width: `${width}px`, height: `${height}px` },
  }, lines.map((line, i) => h('span', { class: i < visible ? 'line-of-tile' : 'unseen' }, line, ' ')));
}

const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// To the next tile in the direction of the key: near along it counts less than off to its side.
function move_focus(event) {
  const direction = directions[event.key];
  const from = event.target.closest('a.tile');
  if (!direction || !from) return;
  event.preventDefault();
  const center = (tile) => [tile.offsetLeft + tile.offsetWidth / 2, tile.offsetTop + tile.offsetHeight / 2];
  const [x, y] = center(from);
  let next = null;
  let least = Infinity;
  for (const tile of event.currentTarget.querySelectorAll('a.tile')) {
    const [dx, dy] = [center(tile)[0] - x, center(tile)[1] - y];
    const along = dx * direction[0] + dy * direction[1];
    const aside = Math.abs(dx * direction[1]) + Math.abs(dy * direction[0]);
    const distance = along + 3 * aside;
    if (tile === from || along <= 0 || distance >= least) continue;
    least = distance;
    next = tile;
  }
  if (!next) return;
  from.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
