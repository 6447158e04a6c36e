// Which section is shown, and when it is read anew.

import { get, may_sign_out, node_now, on_response, Problem, sign_out } from './api.js';
import { h, name, notice, refresh_ages, state } from './dom.js';
import { age, printable } from './format.js';
import { show_internals } from './internals.js';
import { show_overview } from './overview.js';
import { loading } from './part.js';
import { show_scans } from './scans.js';
import { show_sign_in } from './signin.js';
import { show_usage } from './usage.js';

const poll_ms = 10000;
const sections = { overview: show_overview, usage: show_usage, scans: show_scans, internals: show_internals };
const titles = { overview: 'Overview', usage: 'Usage', scans: 'Scans', internals: 'Internals' };
const main = document.getElementById('main');
const tabs = document.getElementById('tabs');

let node = null;         // its name
let answered_at = null;  // the last response
let view = null;
let refresh = null;      // of what `view` shows; null: the form for a token is shown

function place() {
  const [section, query = ''] = location.hash.slice(1).split(/\?(.*)/s);
  return { section: section in sections ? section : 'overview', query: new URLSearchParams(query) };
}

function show_connection(problem) {
  const text = problem
    ? state('bad', `${problem.message}${answered_at ? `; the figures are of ${age(answered_at, node_now())}` : ''}`)
    : state('good', 'connected');
  const box = document.getElementById('connection');
  if (box.textContent !== text.textContent) box.replaceChildren(text);  // else it would be read out again
}

function show_header() {
  const { section } = place();
  document.getElementById('sign-out').hidden = !may_sign_out();
  document.title = `${titles[section]} · ${node ? `${printable(node)} · ` : ''}Spoor`;
  for (const tab of tabs.children) {
    if (tab.getAttribute('href') === `#${section}`) tab.setAttribute('aria-current', 'page');
    else tab.removeAttribute('aria-current');
  }
}

async function show_node() {
  try {
    const status = await get('/v1/status');
    node = status.node;
    document.getElementById('node').replaceChildren(name(node), h('span', { class: 'cluster' }, ' in ', name(status.cluster)));
    if (refresh) show_header();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;  // on_response() has shown it
  }
}

function ask_for_token() {
  node = view = refresh = null;
  tabs.hidden = true;
  document.getElementById('sign-out').hidden = true;
  document.getElementById('node').replaceChildren();
  document.getElementById('connection').replaceChildren();
  document.title = 'Sign in · Spoor';
  if (!main.querySelector('.sign-in')) show_sign_in(main, () => { main.replaceChildren(loading()); open(); });
}

on_response((problem) => {
  if (problem?.status === 401) return ask_for_token();
  if (!refresh) return undefined;
  if (!problem) answered_at = new Date(node_now()).toISOString();
  show_connection(problem);
  if (!view.isConnected) main.replaceChildren(problem ? notice('bad', problem.message) : view);  // now that it may be read
  tabs.hidden = false;
  return undefined;
});

function open() {
  const { section, query } = place();
  if (view?.dataset.section !== section) {
    const is_connected = view?.isConnected;
    view = h('div', { 'data-section': section });
    if (is_connected) main.replaceChildren(view);
  }
  refresh = sections[section](view, query);
  show_header();
  if (!node) show_node();
}

function update() {
  if (document.hidden || !refresh) return;
  refresh_ages(view);
  refresh();
  if (!node) show_node();
}

document.getElementById('sign-out').addEventListener('click', async () => {
  try {
    await sign_out();
    ask_for_token();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
  }
});
document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();  // the hash is the section
  main.focus();
});
addEventListener('hashchange', () => { if (refresh) open(); });
addEventListener('visibilitychange', update);
setInterval(update, poll_ms);
main.replaceChildren(loading());
open();
