// A real spoord on a free port of loopback, with a drive and a data_dir of its own.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [spoord, spoor] = [process.env.SPOORD, process.env.SPOOR];

export class Daemon {
  spoor = [spoor];  // the command line, which may have others before it

  constructor(settings = {}) {
    this.folder = mkdtempSync(join(tmpdir(), 'spoor-page-'));
    this.drive = join(this.folder, 'drive');
    mkdirSync(this.drive);
    this.config = {
      node: { name: 'n1', data_dir: join(this.folder, 'data') },
      drives: [this.drive],
      listen: [{ address: '127.0.0.1', port: 0, insecure: true }],
      scan: { min_cycle_age: '0s' },
      ...settings,
    };
  }

  get config_file() { return join(this.folder, 'spoor.json'); }

  // A file of this many bytes. Names are strings or bytes.
  write(directories, bytes = 1000) {
    let path = Buffer.from(this.drive);
    for (const name of directories) path = Buffer.concat([path, Buffer.from('/'), Buffer.from(name)]);
    mkdirSync(path, { recursive: true });
    writeFileSync(Buffer.concat([path, Buffer.from('/file')]), Buffer.alloc(bytes, 1));
  }

  async start() {
    writeFileSync(this.config_file, JSON.stringify(this.config));
    this.process = spawn(spoord, ['--config', this.config_file], { stdio: ['ignore', 'inherit', 'pipe'] });
    this.log = '';
    this.url = await new Promise((resolve, reject) => {
      this.process.on('exit', (code) => reject(new Error(`spoord ended with ${code}: ${this.log}`)));
      this.process.stderr.on('data', (text) => {
        this.log += text;
        const found = this.log.match(/listening on (http\S+)/);
        if (found) resolve(found[1]);
      });
    });
    return this;
  }

  run(...command) {
    return execFileSync(this.spoor[0], [...this.spoor.slice(1), '--config', this.config_file, '--url', this.url, ...this.credentials ?? [], ...command], { stdio: 'pipe' });
  }

  async stop() {
    const ended = new Promise((resolve) => { this.process.on('exit', resolve); });
    this.process.kill('SIGTERM');
    await ended;
    rmSync(this.folder, { recursive: true });
  }
}

// The ports of a cluster have to be known before its nodes start.
async function free_ports(count) {
  const servers = await Promise.all(Array.from({ length: count }, () => new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => resolve(server));
  })));
  return Promise.all(servers.map((server) => new Promise((resolve) => {
    const { port } = server.address();
    server.close(() => resolve(port));
  })));
}

// Nodes node1, node2, ..., each a peer of the others; not started.
export async function make_cluster(count, settings = {}) {
  const ports = await free_ports(count);
  return ports.map((port, i) => {
    const daemon = new Daemon({
      listen: [{ address: '127.0.0.1', port, insecure: true }],
      peers: { static: ports.filter((other) => other !== port).map((other) => `http://127.0.0.1:${other}`) },
      ...settings,
    });
    daemon.config.node = { ...daemon.config.node, name: `node${i + 1}`, cluster: 'demo' };
    return daemon;
  });
}
