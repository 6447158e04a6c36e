// The children of a directory as areas, and in those their own children. Each is a link; the arrow keys move between
// the children of the directory.

import { h, name } from './dom.js';

const tiles_max = 200;
const label_width_px = 64;
const line_px = 17;
const padding_px = 6;

// tiles: [{label, value, href, kind, size, growth, inner}], the largest first; `inner`: those within, or null.
export function treemap(description) {
  const box = h('div', { class: 'treemap', role: 'group', 'aria-label': `${description}. The table has the same figures.` });
  let tiles = [];
  let width = 0;
  const layout = () => {
    width = box.clientWidth;
    const focused = box.contains(document.activeElement) ? document.activeElement.dataset.number ?? null : null;
    draw(box, joined(tiles), width, box.clientHeight);
    if (focused !== null) box.querySelector(`[data-number="${focused}"]`)?.focus();
  };
  new ResizeObserver(() => { if (box.clientWidth !== width) layout(); }).observe(box);
  box.addEventListener('keydown', move_focus);
  return {
    box,
    set(shown) {
      tiles = shown;
      if (box.clientWidth > 0) layout();
    },
  };
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

// Each tile with its place in the rectangle.
function placed(tiles, width, height) {
  if (tiles.length === 0) return [];
  const root = d3.hierarchy({ tiles }, (each) => each.tiles).sum((tile) => tile.value ?? 0);
  d3.treemap().size([width, height]).paddingInner(2).round(true)(root);
  return root.leaves().map(({ data, x0, y0, x1, y1 }) => ({ tile: data, left: x0, top: y0, width: x1 - x0, height: y1 - y0 }))
    .filter((each) => each.width > 0 && each.height > 0);
}

function draw(box, tiles, width, height) {
  const outer = placed(tiles, width, height);
  const has_room = (at) => at.tile.inner?.length > 0 && at.width >= 2 * label_width_px && at.height >= 5 * line_px;
  box.replaceChildren(...outer.flatMap((at, number) => {
    if (!has_room(at)) return [element(at, number)];
    const inner = placed(at.tile.inner.filter((tile) => tile.value > 0), at.width - padding_px, at.height - line_px - padding_px);
    return [element(at, number, true),
      ...inner.map((each) => element({ ...each, left: at.left + padding_px / 2 + each.left, top: at.top + line_px + padding_px / 2 + each.top }))];
  }));
  const first = box.querySelector('a');
  if (first) first.tabIndex = 0;
}

// All of its text is its name, whatever has room. `has_inner`: only one line has; without a number it is an inner one.
function element({ tile, left, top, width, height }, number, has_inner = false) {
  const lines = [name(tile.label), tile.size, tile.growth].filter(Boolean);
  const visible = width < label_width_px ? 0 : Math.floor((height - padding_px) / line_px);
  const text = has_inner ? [h('span', { class: 'line-of-tile' }, lines.map((line) => [line, ' ']))]
    : lines.map((line, i) => h('span', { class: i < visible ? 'line-of-tile' : 'unseen' }, line, ' '));
  return h(tile.href ? 'a' : 'span', {
    class: `tile ${tile.kind}${number === undefined ? ' inner' : ''}`, href: tile.href, tabindex: tile.href ? '-1' : null, 'data-number': number,
    title: [tile.label, tile.size, tile.growth].filter(Boolean).join(' · '),
    style: { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` },
  }, text);
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
  for (const tile of event.currentTarget.querySelectorAll('a.tile:not(.inner)')) {
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
