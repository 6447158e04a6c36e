// Which section is shown, and when it is read anew.

import { get, may_sign_out, node_now, Problem, sign_out } from './api.js';
import { h, name, notice, refresh_ages, state } from './dom.js';
import { age, printable } from './format.js';
import { show_overview } from './overview.js';
import { show_scans } from './scans.js';
import { show_sign_in } from './signin.js';
import { show_usage } from './usage.js';

const poll_ms = 10000;
const titles = { overview: 'Overview', scans: 'Scans', usage: 'Usage' };
const main = document.getElementById('main');
const tabs = document.getElementById('tabs');

let status = null;      // of the last answer
let answered_at = null;
let shown = null;       // the hash that `view` shows
let view = null;

function place() {
  const [section, query = ''] = location.hash.slice(1).split(/\?(.*)/s);
  return { section: section in titles ? section : 'overview', query: new URLSearchParams(query) };
}

function show_connection(problem) {
  const text = problem
    ? state('bad', `${problem.message}${answered_at ? `; the figures are of ${age(answered_at, node_now())}` : ''}`)
    : state('good', 'connected');
  const box = document.getElementById('connection');
  if (box.textContent !== text.textContent) box.replaceChildren(text);  // else it would be read out again
}

function show_header() {
  document.getElementById('node').replaceChildren(name(status.node), h('span', { class: 'cluster' }, ' in ', name(status.cluster)));
  document.getElementById('sign-out').hidden = !may_sign_out();
  document.title = `${titles[place().section]} · ${printable(status.node)} · Spoor`;
  tabs.hidden = false;
  for (const tab of tabs.children) {
    if (tab.getAttribute('href') === `#${place().section}`) tab.setAttribute('aria-current', 'page');
    else tab.removeAttribute('aria-current');
  }
}

function ask_for_token() {
  status = shown = view = null;
  tabs.hidden = true;
  document.getElementById('sign-out').hidden = true;
  document.getElementById('node').replaceChildren();
  document.getElementById('connection').replaceChildren();
  document.title = 'Sign in · Spoor';
  if (!main.querySelector('.sign-in')) show_sign_in(main, () => { main.replaceChildren(); update(); });
}

function show_problem(problem) {
  if (problem.status === 401) return ask_for_token();
  show_connection(problem);
  if (!status) main.replaceChildren(notice('bad', problem.message));
  return undefined;
}

// A new element for each place, so that a slow answer for another one is dropped with its element.
async function show_section() {
  const { section, query } = place();
  const is_new = shown !== location.hash;
  if (is_new) {
    const was_usage = section === 'usage' && view?.dataset.section === 'usage';
    shown = location.hash;
    if (!was_usage) {
      view = h('div', { 'data-section': section });
      main.replaceChildren(view);
    }
  }
  show_header();
  refresh_ages(view);
  if (section === 'overview') await show_overview(view, status);
  if (section === 'scans') await show_scans(view);
  if (section === 'usage' && is_new) await show_usage(view, query);  // else what the user reads would move
}

async function update() {
  try {
    status = await get('/v1/status');
    answered_at = new Date(node_now()).toISOString();
    show_connection(null);
    await show_section();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    show_problem(problem);
  }
}

document.getElementById('sign-out').addEventListener('click', async () => {
  try {
    await sign_out();
    ask_for_token();
  } catch (problem) {
    show_problem(problem);
  }
});
document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();  // the hash is the section
  main.focus();
});
addEventListener('hashchange', update);
addEventListener('visibilitychange', () => { if (!document.hidden) update(); });
setInterval(() => { if (!document.hidden && status) update(); }, poll_ms);
update();
