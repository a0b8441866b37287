'use strict';

// ---- Test messages ------------------------------------------------------------------------------------------------------
// As in tracker.go: a sequence number, of which a short message has the low part, and then bytes cut from a pattern.

const maxMessage = 256 << 10;

function makePattern(first, period) {
  const b = new Uint8Array(maxMessage + period);
  for (let i = 0; i < b.length; i++) b[i] = first + i % period;
  return b;
}

const hexDigits = '0123456789abcdef';
const binaryFormat = { header: 4, bits: 8, period: 251, pattern: makePattern(0, 251) };
const textFormat = { header: 8, bits: 4, period: 23, pattern: makePattern(97, 23) };
const decoder = new TextDecoder();
const encoder = new TextEncoder();

// fillMessage makes b test message number seq.
function fillMessage(format, b, seq) {
  const n = Math.min(b.length, format.header);
  for (let i = 0; i < n; i++) {
    const v = seq >>> (format.bits * (n - 1 - i));
    b[i] = format.bits === 4 ? hexDigits.charCodeAt(v & 15) : v & 255;
  }
  const from = seq % format.period;
  b.set(format.pattern.subarray(from, from + b.length - n), n);
}

// A Tracker checks the test messages that arrive on a channel, and counts.
class Tracker {
  constructor() {
    this.messages = this.bytes = this.text = this.late = this.doubled = this.corrupt = 0;
    this.missed = 0; // skipped, and not arrived since
    this.next = 0;
    this.missing = new Set();
  }

  // add takes the data of a message event: a string or an ArrayBuffer.
  add(data) {
    const text = typeof data === 'string';
    const b = text ? encoder.encode(data) : new Uint8Array(data);
    this.messages++;
    this.bytes += b.length;
    if (text) this.text++;
    if (b.length === 0) return;
    const format = text ? textFormat : binaryFormat;
    const n = Math.min(b.length, format.header);
    let low = 0;
    for (let i = 0; i < n; i++) {
      let v = b[i];
      if (format.bits === 4) {
        v = hexDigits.indexOf(String.fromCharCode(v));
        if (v < 0) {
          this.corrupt++;
          return;
        }
      }
      low = (low << format.bits | v) | 0;
    }
    const shift = 32 - format.bits * n;
    const ahead = ((low - this.next) << shift) >> shift;
    const seq = (this.next + ahead) >>> 0;
    if (ahead >= 0) {
      this.missed += ahead;
      for (let s = this.next; s !== seq && this.missing.size < 65536; s = (s + 1) >>> 0) this.missing.add(s);
      this.next = (seq + 1) >>> 0;
    } else if (this.missing.delete(seq)) {
      this.missed--;
      this.late++;
    } else {
      this.doubled++;
    }
    const pattern = format.pattern, offset = seq % format.period - n;
    for (let i = n; i < b.length; i++) {
      if (b[i] !== pattern[offset + i]) {
        this.corrupt++;
        break;
      }
    }
  }

  report() {
    const { messages, bytes, text, late, doubled, corrupt } = this;
    return { messages, bytes, text, late, doubled, corrupt, missing: this.missed };
  }
}

// A Sender sends test messages on a channel as fast as it takes them, without letting more than sendBuffer wait in it.
const sendBuffer = 256 << 10;

class Sender {
  // count 0: until stop. done is a promise for the number of messages sent.
  constructor(channel, { size = 1024, count = 0, text = false, random = false } = {}) {
    Object.assign(this, { channel, size, count, text, random, messages: 0, bytes: 0, stopped: false });
    this.buffer = new Uint8Array(maxMessage);
    channel.bufferedAmountLowThreshold = sendBuffer / 2;
    this.done = new Promise((resolve, reject) => { this.resolve = resolve; this.reject = reject; });
    this.done.catch(() => {});
    this.onLow = () => this.pump();
    channel.addEventListener('bufferedamountlow', this.onLow);
    channel.addEventListener('close', () => this.stop());
    if (channel.readyState === 'open') this.pump();
    else channel.addEventListener('open', this.onLow);
  }

  pump() {
    try {
      while (!this.stopped && this.channel.readyState === 'open' && this.channel.bufferedAmount < sendBuffer) {
        if (this.count && this.messages >= this.count) return this.stop();
        const size = this.random ? Math.floor(Math.random() * (this.size + 1)) : this.size;
        const b = this.buffer.subarray(0, size);
        fillMessage(this.text ? textFormat : binaryFormat, b, this.messages >>> 0);
        this.channel.send(this.text ? decoder.decode(b) : b);
        this.messages++;
        this.bytes += size;
      }
    } catch (e) {
      this.stop();
      this.reject(e);
    }
  }

  stop() {
    this.stopped = true;
    this.channel.removeEventListener('bufferedamountlow', this.onLow);
    this.resolve(this.messages);
  }
}

// ---- The connection to the program --------------------------------------------------------------------------------------

function within(promise, ms, what) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`${what}: nothing within ${ms} ms`)), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// event waits for one event of a target, or for the end of its connection.
function event(target, name, ms = 20000) {
  return within(new Promise((resolve, reject) => {
    target.addEventListener(name, resolve, { once: true });
    target.addEventListener('error', (e) => reject(new Error(`${e.error && e.error.message || 'error'}, before ${name}`)), { once: true });
  }), ms, name);
}

async function post(path, body) {
  const r = await fetch(path, {
    method: 'POST', body: body && JSON.stringify(body), headers: { 'Content-Type': 'application/json' },
    signal: AbortSignal.timeout(15000),
  });
  if (!r.ok) throw new Error((await r.text()).trim() || `${path}: ${r.status}`);
  return r.status === 204 ? null : r.json();
}

// A Connection is an RTCPeerConnection to the program, with a control channel.
class Connection {
  // offerBy is 'browser' or 'program'.
  static async connect(offerBy = 'browser', ms = 20000) {
    const c = new Connection();
    try {
      await within(c.start(offerBy), ms, 'connect');
    } catch (e) {
      c.close();
      throw e;
    }
    return c;
  }

  constructor() {
    this.pc = new RTCPeerConnection();
    this.number = 0;
    this.waiting = new Map();
    this.closedChannels = []; // what the program said of channels that have closed; the newest 256
    this.closedWaiting = [];
    this.onstate = this.onclosed = this.onend = () => {};
    this.ended = false;
    this.channels = []; // opened by the program, for which nobody has asked yet
    this.channelWaiting = [];
    this.controlOpen = new Promise((resolve, reject) => { this.controlReady = resolve; this.controlFailed = reject; });
    this.controlOpen.catch(() => {});
    this.pc.ondatachannel = (e) => {
      e.channel.binaryType = 'arraybuffer';
      if (e.channel.protocol === 'control') {
        this.useControl(e.channel);
        return;
      }
      // Chromium discards much of what is sent between this event and the next one, although the channel says that it is open.
      e.channel.addEventListener('open', () => {
        if (this.channelWaiting.length) this.channelWaiting.shift()(e.channel);
        else this.channels.push(e.channel);
      }, { once: true });
    };
    this.pc.onconnectionstatechange = () => {
      if (this.pc.connectionState === 'failed') this.end('the connection has failed');
    };
  }

  async start(offerBy) {
    if (offerBy === 'program') {
      const { id, sdp } = await post('/invite');
      this.id = id;
      await this.pc.setRemoteDescription(sdp);
      await this.describe(await this.pc.createAnswer());
      await post(`/peers/${id}/answer`, { sdp: this.pc.localDescription });
    } else {
      this.useControl(this.pc.createDataChannel('control', { protocol: 'control' }));
      await this.describe(await this.pc.createOffer());
      const { id, sdp } = await post('/offer', { sdp: this.pc.localDescription });
      this.id = id;
      await this.pc.setRemoteDescription(sdp);
    }
    await this.controlOpen;
    // What is sent at once on a channel of the other side may be lost, see ondatachannel: the first command is one to repeat.
    for (let tries = 1; ; tries++) {
      try {
        return await this.ask({ do: 'ping' }, 2000);
      } catch (e) {
        if (tries === 3 || this.ended) throw e;
      }
    }
  }

  // describe sets the local description, and waits for the browser's addresses.
  async describe(description) {
    await this.pc.setLocalDescription(description);
    if (this.pc.iceGatheringState === 'complete') return;
    await within(new Promise((resolve) => {
      this.pc.addEventListener('icegatheringstatechange', () => { if (this.pc.iceGatheringState === 'complete') resolve(); });
    }), 3000, 'addresses').catch(() => {}); // what there is must do
  }

  useControl(channel) {
    this.control = channel;
    channel.addEventListener('open', () => this.controlReady());
    channel.addEventListener('close', () => this.end('the program has closed the connection'));
    channel.addEventListener('message', (e) => {
      const m = JSON.parse(e.data);
      if (m.event === 'answer') {
        const w = this.waiting.get(m.number);
        this.waiting.delete(m.number);
        if (w) m.error ? w.reject(new Error(m.error)) : w.resolve(m.state);
      } else if (m.event === 'state') {
        this.onstate(m.state);
      } else if (m.event === 'closed') {
        this.closedChannels.push(m.closed);
        if (this.closedChannels.length > 256) this.closedChannels.shift();
        this.onclosed(m.closed);
        for (const f of this.closedWaiting) f();
      }
    });
  }

  // ask gives the program a command, and returns its answer: the state, if that was asked for.
  ask(command, ms = 15000) {
    const number = ++this.number;
    const answer = new Promise((resolve, reject) => this.waiting.set(number, { resolve, reject }));
    this.control.send(JSON.stringify({ ...command, number }));
    return within(answer, ms, `answer to ${command.do}`);
  }

  // open makes a channel. The protocol names the service, see channel.go.
  open(label, protocol, options = {}) {
    const dc = this.pc.createDataChannel(label, { ...options, protocol });
    dc.binaryType = 'arraybuffer';
    return dc;
  }

  // accept returns the next channel that the program opens.
  accept(ms = 10000) {
    if (this.channels.length) return Promise.resolve(this.channels.shift());
    return within(new Promise((resolve) => this.channelWaiting.push(resolve)), ms, 'channel of the program');
  }

  // closedReport returns what the program says of the channel with a label, once that has closed.
  closedReport(label, ms = 20000) {
    const find = () => this.closedChannels.find((c) => c.label === label);
    return within(new Promise((resolve) => {
      const look = () => { const c = find(); if (c) resolve(c); };
      this.closedWaiting.push(look);
      look();
    }), ms, `end of channel ${label} at the program`);
  }

  end(why) {
    if (this.ended) return;
    this.ended = true;
    this.controlFailed(new Error(why));
    for (const w of this.waiting.values()) w.reject(new Error(why));
    this.waiting.clear();
    this.pc.close();
    this.onend(why);
  }

  close() {
    if (this.id && !this.ended) navigator.sendBeacon(`/peers/${this.id}/close`);
    this.end('closed');
  }
}

// For tests, and for experiments on the browser's console.
window.weft = { Connection, Sender, Tracker, event, within, maxMessage };

// ---- The page -----------------------------------------------------------------------------------------------------------

const $ = (id) => document.getElementById(id);
const tickTime = 500;            // ms between two points of the charts
const points = 60000 / tickTime; // of a chart
const maxSamples = 20000;        // round trips that the table is made from

const ui = {
  connection: null,
  state: null, // what the program last said
  traffic: [], // channels of this page, see startTraffic
  opened: 0,
  lostBefore: 0, // messages lost on channels that have closed
  up: [], down: [], p50: [], worst: [], // points of the charts
  trips: [], tick: [],                  // round trips in ms: of this connection, and since the last point
  probe: null,
  last: { up: 0, down: 0, time: 0 },
  peak: { up: 0, down: 0 }, total: { up: 0, down: 0 }, since: 0,
};

const number = (v, digits = 0) => v.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
const rate = (v) => number(v, v < 10 ? 2 : v < 100 ? 1 : 0);

function amount(bytes) {
  for (const [unit, name] of [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']]) {
    if (bytes >= unit) return `${number(bytes / unit, 1)} ${name}`;
  }
  return `${bytes} B`;
}

function quantile(sorted, q) {
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] : NaN;
}

const trip = (v) => (Number.isNaN(v) || v === undefined ? '–' : number(v, v < 10 ? 2 : 1));

function setRows(table, rows) {
  const body = document.createElement('tbody');
  for (const row of rows) {
    const tr = body.insertRow();
    for (const cell of row) {
      if (cell instanceof Node) {
        tr.appendChild(cell);
        continue;
      }
      const td = tr.insertCell();
      td.textContent = cell;
    }
  }
  if (table.tBodies[0]) table.replaceChild(body, table.tBodies[0]);
  else table.appendChild(body);
}

function setHead(table, names) {
  const tr = table.createTHead().insertRow();
  for (const n of names) {
    const th = document.createElement('th');
    th.textContent = n;
    tr.appendChild(th);
  }
}

function say(problem) { $('message').textContent = problem || ''; }

// -- Connecting

async function connect() {
  say('');
  $('connect').disabled = true;
  setStatus('connecting…', '');
  try {
    const c = await Connection.connect($('offerBy').value);
    ui.connection = c;
    c.onstate = (s) => { ui.state = s; };
    c.onend = (why) => disconnected(c, why);
    c.onclosed = (closed) => channelClosed(closed);
    Object.assign(ui, { state: null, traffic: [], lostBefore: 0, up: [], down: [], p50: [], worst: [], trips: [], tick: [], since: performance.now() });
    Object.assign(ui.total, { up: 0, down: 0 });
    Object.assign(ui.peak, { up: 0, down: 0 });
    Object.assign(ui.last, { up: 0, down: 0, time: performance.now() });
    setStatus('connected', 'on');
    startProbe();
    if (Number($('loss').value)) setLoss();
  } catch (e) {
    setStatus('not connected', 'off');
    say(e.message);
  }
  $('connect').disabled = false;
  buttons();
}

function disconnected(c, why) {
  if (ui.connection !== c) return;
  ui.connection = null;
  ui.probe = null;
  setStatus('not connected', 'off');
  if (why !== 'closed') say(why);
  buttons();
}

function setStatus(text, kind) {
  $('status').textContent = text;
  $('status').className = `pill ${kind}`;
}

function buttons() {
  const on = !!ui.connection;
  $('connect').textContent = on ? 'Disconnect' : 'Connect';
  $('start').disabled = !on;
  $('stop').disabled = !on || !ui.traffic.some((t) => t.channel.readyState !== 'closed');
  $('offerBy').disabled = on;
}

// -- Traffic

function channelOptions() {
  const o = { ordered: $('order').value === 'ordered' };
  const r = $('reliability').value;
  if (r !== 'reliable') o[r] = Math.min(65535, Math.max(0, Number($('limit').value) || 0));
  return o;
}

function startTraffic() {
  const direction = $('direction').value, size = Number($('size').value), text = $('content').value === 'text';
  const query = `?size=${size}${text ? '&text=1' : ''}`;
  const protocol = { up: 'sink', down: 'source' + query, both: 'both' + query, echo: 'echo' }[direction];
  const count = Math.min(32, Math.max(1, Number($('count').value) || 1));
  for (let i = 0; i < count; i++) {
    const t = { label: `${direction} ${++ui.opened}`, direction, size, tracker: new Tracker(), options: channelOptions() };
    try {
      t.channel = ui.connection.open(t.label, protocol, t.options);
    } catch (e) {
      say(e.message);
      return;
    }
    t.channel.addEventListener('message', (e) => t.tracker.add(e.data));
    t.channel.addEventListener('open', () => { t.number = t.channel.id; });
    t.channel.addEventListener('close', buttons);
    if (direction !== 'down') t.sender = new Sender(t.channel, { size, text });
    ui.traffic.push(t);
  }
  buttons();
}

function stopTraffic() {
  for (const t of ui.traffic) t.channel.close();
  buttons();
}

// lost counts the messages of a channel that did not arrive, in both directions.
function lost(t) {
  const there = t.final || t.remote;
  return (t.tracker.missed || 0) + (there ? there.received.missing : 0);
}

function channelClosed(closed) {
  const t = ui.traffic.find((x) => x.label === closed.label);
  if (t) t.final = closed;
  if (closed.error && ui.connection) say(`Channel ${closed.label}: ${closed.error}`);
}

async function setLoss() {
  const loss = Number($('loss').value);
  $('lossText').textContent = `${loss} %`;
  if (ui.connection) await ui.connection.ask({ do: 'loss', loss }).catch((e) => say(e.message));
}

// -- Probes

function startProbe() {
  const c = ui.connection;
  const channel = c.open('probe', 'echo', {});
  const sent = []; // times, in the order of the answers
  ui.probe = channel;
  const step = () => {
    if (ui.connection !== c) return;
    const size = Math.min(16384, Math.max(1, Number($('probeSize').value) || 1));
    if (channel.readyState === 'open' && sent.length < 1000) {
      sent.push(performance.now());
      channel.send(new Uint8Array(size));
    }
    setTimeout(step, 1000 / Math.min(200, Math.max(1, Number($('probeRate').value) || 1)));
  };
  channel.addEventListener('message', () => {
    const t = performance.now() - sent.shift();
    ui.tick.push(t);
    ui.trips.push(t);
    if (ui.trips.length > maxSamples) ui.trips.splice(0, maxSamples / 2);
  });
  step();
}

// -- Showing it

function push(series, v) {
  series.push(v);
  if (series.length > points) series.shift();
}

function tick() {
  if (ui.connection) measure();
  show();
}

function measure() {
  const now = performance.now();
  let up = 0, down = 0;
  for (const t of ui.traffic) {
    t.remote = ui.state && ui.state.channels.find((c) => c.label === t.label) || t.remote;
    if (t.sender) up += t.sender.bytes - Math.min(t.sender.bytes, t.channel.bufferedAmount);
    down += t.tracker.bytes;
  }
  const seconds = (now - ui.last.time) / 1000;
  const mbps = (bytes, before) => Math.max(0, bytes - before) * 8 / 1e6 / seconds;
  const rates = { up: mbps(up, ui.last.up), down: mbps(down, ui.last.down) };
  for (const d of ['up', 'down']) {
    push(ui[d], rates[d]);
    ui.peak[d] = Math.max(ui.peak[d], rates[d]);
  }
  Object.assign(ui.total, { up, down });
  Object.assign(ui.last, { up, down, time: now });
  const sorted = ui.tick.sort((a, b) => a - b);
  push(ui.p50, quantile(sorted, 0.5));
  push(ui.worst, sorted.length ? sorted[sorted.length - 1] : NaN);
  ui.tick = [];
}

function show() {
  const recent = (s) => (s.length ? s[s.length - 1] : 0);
  $('upNow').textContent = rate(recent(ui.up));
  $('downNow').textContent = rate(recent(ui.down));
  const trips = [...ui.trips].sort((a, b) => a - b);
  $('p50Now').textContent = trip(quantile(trips, 0.5));
  $('p99Now').textContent = trip(quantile(trips, 0.99));
  $('lostNow').textContent = number(ui.traffic.reduce((n, t) => n + lost(t), 0));
  chart($('throughput'), [[ui.up, '--up'], [ui.down, '--down']], 'Mb/s');
  chart($('latency'), [[ui.worst, '--slow'], [ui.p50, '--fast']], 'ms');
  const seconds = Math.max(0.001, (ui.last.time - ui.since) / 1000);
  const mean = (d) => ui.total[d] * 8 / 1e6 / seconds;
  setRows($('rates'), [['browser to program', 'up'], ['program to browser', 'down']].map(([name, d]) => [
    name, rate(recent(ui[d])), rate(mean(d)), rate(ui.peak[d]), amount(ui.total[d])]));
  setRows($('trips'), [['all', ui.trips], ['last 10 s', ui.trips.slice(-10 * (Number($('probeRate').value) || 1))]].map(([name, list]) => {
    const s = [...list].sort((a, b) => a - b);
    return [name, number(s.length), trip(quantile(s, 0.5)), trip(quantile(s, 0.9)), trip(quantile(s, 0.99)), trip(s[s.length - 1])];
  }));
  showChannels();
  showSides();
}

function resetButtons(t) {
  const td = document.createElement('td');
  const button = (name, f) => {
    const b = document.createElement('button');
    b.type = 'button';
    b.className = 'small';
    b.textContent = name;
    b.onclick = f;
    td.append(b, ' ');
  };
  if (t.channel.readyState === 'open') {
    button('reset here', () => t.channel.close());
    button('reset there', () => ui.connection && ui.connection.ask({ do: 'close', channel: t.number }).catch((e) => say(e.message)));
  } else {
    td.textContent = t.channel.readyState;
  }
  return td;
}

function showChannels() {
  const shown = ui.traffic.slice(-32);
  // A button must not be replaced while it is pressed.
  if ($('channels').matches(':active')) return;
  setRows($('channels'), shown.map((t) => {
    const there = t.final || t.remote;
    const kind = `${t.options.ordered ? 'ordered' : 'unordered'}, ` +
      ('maxRetransmits' in t.options ? `${t.options.maxRetransmits} resent`
        : 'maxPacketLifeTime' in t.options ? `${t.options.maxPacketLifeTime} ms` : 'reliable');
    const r = t.tracker;
    const wrong = r.doubled + r.corrupt + (there ? there.received.doubled + there.received.corrupt : 0);
    return [
      t.number ?? '–', { up: 'to program', down: 'from program', both: 'both ways', echo: 'echo' }[t.direction], kind,
      t.sender ? number(t.sender.messages) : '–', there && t.sender ? number(there.received.messages) : '–',
      there && t.direction !== 'up' ? number(there.sentMessages) : '–', t.direction !== 'up' ? number(r.messages) : '–',
      number(lost(t)), number(r.late + (there ? there.received.late : 0)), number(wrong), resetButtons(t)];
  }));
  $('channelNote').hidden = shown.length === 0;
}

function showSides() {
  const s = ui.state;
  const weft = s && s.sctp.weft;
  const or = (v) => (s ? v() : '–');
  setRows($('program'), [
    ['SCTP', or(() => s.module)],
    ['state', or(() => s.state)],
    ['smoothed round trip', or(() => `${number(s.sctp.rtt, 2)} ms`)],
    ['congestion window', or(() => amount(s.sctp.cwnd))],
    ["browser's receive window", or(() => amount(s.sctp.rwnd))],
    ['MTU', or(() => `${s.sctp.mtu} B`)],
    ['sent, received', or(() => `${amount(s.sctp.sent)}, ${amount(s.sctp.received)}`)],
    ['chunks sent, sent again', weft ? `${number(weft.ChunksSent)}, ${number(weft.Retransmits)}` : '–'],
    ['found lost by SACKs; timeouts', weft ? `${number(weft.FastRetransmits)}; ${number(weft.Timeouts)}` : '–'],
    ['packets in, out', weft ? `${number(weft.PacketsReceived)}, ${number(weft.PacketsSent)}` : '–'],
    ['zero checksum', or(() => (s.sctp.zeroChecksum ? 'both ways' : 'no'))],
    ['lost on purpose', or(() => `${number(s.dropped)} packets`)],
  ]);
  const pc = ui.connection && ui.connection.pc;
  const b = ui.browser || {};
  const sctp = pc && pc.sctp;
  setRows($('browser'), [
    ['state', pc ? pc.connectionState : 'closed'],
    ['round trip of ICE checks', b.rtt === undefined ? '–' : `${number(b.rtt * 1000, 2)} ms`],
    ['longest message', sctp ? amount(sctp.maxMessageSize) : '–'],
    ['most channels', sctp && sctp.maxChannels ? number(sctp.maxChannels) : '–'],
    ['waiting to be sent', amount(ui.traffic.reduce((n, t) => n + (t.channel.readyState === 'open' ? t.channel.bufferedAmount : 0), 0))],
    ['sent, received (UDP)', b.sent === undefined ? '–' : `${amount(b.sent)}, ${amount(b.received)}`],
    ['DTLS', b.dtls || '–'],
    ['local, remote address', b.addresses || '–'],
    ['channels opened, closed', b.opened === undefined ? '–' : `${b.opened}, ${b.closed}`],
  ]);
}

// browserStats reads what the browser tells about the connection.
async function browserStats() {
  const c = ui.connection;
  if (!c || c.ended) return;
  const b = {};
  const report = await c.pc.getStats();
  for (const s of report.values()) {
    if (s.type === 'transport') {
      Object.assign(b, { sent: s.bytesSent, received: s.bytesReceived });
      if (s.tlsVersion) b.dtls = `${{ FEFD: '1.2', FEFC: '1.3' }[s.tlsVersion] || s.tlsVersion}, ${(s.dtlsCipher || '').replace('TLS_', '')}`;
      const pair = report.get(s.selectedCandidatePairId);
      if (pair) {
        b.rtt = pair.currentRoundTripTime;
        const at = (id) => { const x = report.get(id); return x ? `${x.address || '(hidden)'}:${x.port}` : '–'; };
        b.addresses = `${at(pair.localCandidateId)}, ${at(pair.remoteCandidateId)}`;
      }
    }
    if (s.type === 'peer-connection') Object.assign(b, { opened: s.dataChannelsOpened, closed: s.dataChannelsClosed });
  }
  ui.browser = b;
}

// chart draws series of points, the newest at the right.
function chart(canvas, series, unit) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const g = canvas.getContext('2d');
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name);
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.clearRect(0, 0, width, height);
  const left = 64, right = width - 8, top = 8, bottom = height - 20;
  let most = 0;
  for (const [s] of series) for (const v of s) if (v > most) most = v;
  const step = niceStep(most / 4 || 0.25);
  const limit = step * Math.max(1, Math.ceil(most * 1.02 / step));
  const y = (v) => bottom - (bottom - top) * v / limit;
  g.font = '12px system-ui, "DejaVu Sans", sans-serif';
  g.lineWidth = 1;
  g.textAlign = 'right';
  g.textBaseline = 'middle';
  for (let v = 0; v <= limit + step / 2; v += step) {
    g.strokeStyle = colour('--line');
    g.beginPath();
    g.moveTo(left, Math.round(y(v)) + 0.5);
    g.lineTo(right, Math.round(y(v)) + 0.5);
    g.stroke();
    g.fillStyle = colour('--quiet');
    const label = step >= 1 ? number(v) : number(v, step >= 0.1 ? 1 : 2);
    g.fillText(v + step > limit + step / 2 ? `${label} ${unit}` : label, left - 6, y(v));
  }
  g.textBaseline = 'top';
  const x = (i) => right - (right - left) * i / (points - 1); // i points ago
  for (let s = 0; s <= 60; s += 10) {
    g.textAlign = s === 0 ? 'right' : 'center';
    g.fillText(s ? `−${s} s` : 'now', x(s * 1000 / tickTime - (s === 60 ? 1 : 0)), bottom + 5);
  }
  for (const [s, name] of series) {
    g.strokeStyle = colour(name);
    g.lineWidth = 2;
    g.lineJoin = 'round';
    g.beginPath();
    let drawing = false;
    s.forEach((v, i) => {
      if (Number.isNaN(v)) {
        drawing = false;
        return;
      }
      const at = [x(s.length - 1 - i), y(v)];
      drawing ? g.lineTo(...at) : g.moveTo(...at);
      drawing = true;
    });
    g.stroke();
  }
}

// niceStep returns the least of 1, 2 and 5 times a power of ten that is at least v.
function niceStep(v) {
  const power = 10 ** Math.floor(Math.log10(v));
  for (const m of [1, 2, 5]) if (m * power >= v) return m * power;
  return 10 * power;
}

function startPage() {
  setHead($('rates'), ['', 'now', 'mean', 'peak', 'in all']);
  setHead($('trips'), ['', 'probes', 'p50', 'p90', 'p99', 'max']);
  setHead($('channels'), ['number', 'direction', 'kind', 'sent here', 'arrived there', 'sent there', 'arrived here', 'lost', 'late', 'wrong', '']);
  $('connect').onclick = () => (ui.connection ? ui.connection.close() : connect());
  $('settings').onsubmit = (e) => { e.preventDefault(); startTraffic(); };
  $('stop').onclick = stopTraffic;
  $('loss').oninput = setLoss;
  $('reliability').onchange = () => {
    const r = $('reliability').value;
    $('limitRow').hidden = r === 'reliable';
    $('limitName').textContent = r === 'maxRetransmits' ? 'Retransmissions at most' : 'Lifetime in milliseconds';
    $('limit').value = r === 'maxRetransmits' ? 0 : 50;
  };
  window.addEventListener('pagehide', () => ui.connection && ui.connection.close());
  setInterval(tick, tickTime);
  setInterval(() => browserStats().catch(() => {}), 1000);
  window.addEventListener('resize', show);
  show();
  // With ?wait in the address the page connects when it is told to.
  if (!new URLSearchParams(location.search).has('wait')) connect();
}

window.weft.ui = ui;
startPage();
