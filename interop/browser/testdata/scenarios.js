'use strict';
// What TestChromium has the browser do. Each function throws if something is not as it must be, and returns what it counted.

(() => {
const { Connection, Sender, Tracker, event, maxMessage } = window.weft;

function check(ok, what) {
  if (!ok) throw new Error(what);
}

const same = (a, b) => a.length === b.length && a.every((v, i) => v === b[i]);

// using connects, runs f and closes, whatever happens.
async function using(offerBy, f) {
  const c = await Connection.connect(offerBy);
  try {
    return await f(c);
  } finally {
    c.close();
  }
}

// wantAll checks what one end has received of sent messages, on a reliable channel.
function wantAll(name, report, sent, { ordered = true, empty = 0 } = {}) {
  const r = JSON.stringify(report);
  check(report.messages === sent, `${name}: ${report.messages} of ${sent} messages arrived: ${r}`);
  check(report.missing === empty, `${name}: ${report.missing} of ${sent} messages missing: ${r}`);
  check(report.doubled === 0 && report.corrupt === 0, `${name}: wrong messages: ${r}`);
  if (ordered) check(report.late === 0, `${name}: out of order: ${r}`);
}

// wantSome checks the same on a channel that may lose messages.
function wantSome(name, report, sent, ordered) {
  const r = JSON.stringify(report);
  check(report.messages <= sent, `${name}: ${report.messages} of ${sent} messages arrived: ${r}`);
  check(report.doubled === 0 && report.corrupt === 0, `${name}: wrong messages: ${r}`);
  if (ordered) check(report.late === 0, `${name}: out of order: ${r}`);
  return sent - report.messages;
}

// track has a tracker look at what arrives on a channel.
function track(channel) {
  const tracker = new Tracker();
  channel.addEventListener('message', (e) => tracker.add(e.data));
  return tracker;
}

// messagesSent returns how many messages the browser says it has sent on a channel.
async function messagesSent(c, channel) {
  for (const s of (await c.pc.getStats()).values()) {
    if (s.type === 'data-channel' && s.dataChannelIdentifier === channel.id && s.label === channel.label) return s.messagesSent;
  }
  throw new Error(`no statistics of channel ${channel.label}`);
}

// until waits for a condition, which events make true.
async function until(what, f, ms = 20000) {
  const end = performance.now() + ms;
  while (!f()) {
    check(performance.now() < end, `${what}: not within ${ms} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const scenarios = {
  // Messages of all kinds of length come back as they were, as text and as binary.
  async echo(offerBy, ordered) {
    return using(offerBy, async (c) => {
      const dc = c.open('echo', 'echo', { ordered });
      await event(dc, 'open');
      let count = 0;
      const exchange = async (data) => {
        const answer = event(dc, 'message');
        dc.send(data);
        const got = (await answer).data;
        check(typeof got === typeof data || got instanceof ArrayBuffer, `${typeof got} came back for ${typeof data}`);
        return got;
      };
      for (const size of [0, 1, 2, 3, 4, 63, 64, 1023, 1135, 1136, 1172, 1200, 1201, 4096, 16384, 65535, 65536, 65537, 262143, maxMessage]) {
        const b = crypto.getRandomValues(new Uint8Array(Math.min(size, 65536)));
        const data = new Uint8Array(size);
        for (let i = 0; i < size; i += b.length) data.set(b.subarray(0, Math.min(b.length, size - i)), i);
        const got = new Uint8Array(await exchange(data));
        check(same(got, data), `binary message of ${size} bytes came back as one of ${got.length} that differs`);
        const text = 'weft→'.repeat(Math.ceil(size / 5)).slice(0, Math.floor(size / 2)); // characters of 1 and 3 bytes
        const back = await exchange(text);
        check(back === text, `text of ${text.length} characters came back as ${typeof back} of ${back.length}`);
        count += 2;
      }
      return { count };
    });
  },

  // Test messages run both ways at once on several channels. Both ends count.
  async bulk(offerBy, options, channels, size, count, text) {
    return using(offerBy, async (c) => {
      const start = performance.now();
      const one = async (i) => {
        const label = `bulk ${i}`;
        const dc = c.open(label, `both?size=${size}&count=${count}${text ? '&text=1' : ''}`, options);
        const tracker = track(dc);
        const sent = await new Sender(dc, { size, count, text }).done;
        await until(`messages of ${label}`, () => tracker.messages >= count, 40000);
        dc.close();
        const there = await c.closedReport(label);
        const ordered = options.ordered !== false;
        wantAll(`${label}, browser to program`, there.received, sent, { ordered });
        wantAll(`${label}, program to browser`, tracker.report(), count, { ordered });
        check(there.received.text === (text ? count : 0) && tracker.text === (text ? count : 0), `${label}: text became binary, or the reverse`);
        return tracker.late + there.received.late;
      };
      const late = await Promise.all(Array.from({ length: channels }, (_, i) => one(i)));
      const mbps = channels * size * count * 8 / 1e3 / (performance.now() - start);
      return { late: late.reduce((a, b) => a + b), mbps: Math.round(mbps) };
    });
  },

  // Messages of random lengths, some of them empty, come back in order.
  async random(offerBy, count) {
    return using(offerBy, async (c) => {
      const dc = c.open('random', 'echo');
      const tracker = track(dc);
      let empty = 0;
      const send = dc.send.bind(dc);
      dc.send = (b) => { if (b.length === 0) empty++; send(b); };
      const sent = await new Sender(dc, { size: maxMessage, count, random: true }).done;
      for (let i = 0; i < 50; i++) dc.send(new Uint8Array(0));
      await until('random messages', () => tracker.messages >= sent + 50, 40000);
      wantAll('random', tracker.report(), sent + 50, { empty: tracker.missed });
      check(tracker.missed <= empty - 50, `${tracker.missed} numbers missing, ${empty} messages were empty`);
      return { bytes: tracker.bytes, empty };
    });
  },

  // Channels are closed from either side in turn. What was sent before arrives, and the number is used again.
  async reset(offerBy, rounds) {
    return using(offerBy, async (c) => {
      const count = 200, size = 3000;
      let number;
      const again = (dc, what) => {
        if (number === undefined) number = dc.id;
        check(dc.id === number, `${what}: channel ${dc.id}, want ${number} again`);
      };
      for (let i = 0; i < rounds; i++) {
        // The browser sends and closes at once.
        let dc = c.open(`out ${i}`, 'sink');
        await event(dc, 'open');
        again(dc, `out ${i}`);
        const sent = await new Sender(dc, { size, count }).done;
        const closed = event(dc, 'close');
        dc.close();
        const there = await c.closedReport(`out ${i}`);
        wantAll(`out ${i}`, there.received, sent);
        await closed;

        // The program sends and closes at once.
        dc = c.open(`in ${i}`, `source?size=${size}&count=${count}&close=1`);
        const tracker = track(dc);
        await event(dc, 'close');
        again(dc, `in ${i}`);
        wantAll(`in ${i}`, tracker.report(), count);

        // Both send without end; the program closes in the middle.
        dc = c.open(`both ${i}`, `both?size=${size}`);
        const received = track(dc);
        const sender = new Sender(dc, { size });
        await until('traffic', () => received.messages > 50);
        again(dc, `both ${i}`);
        // What waits in the browser when the program closes is not sent any more, which the browser reports as an error.
        await c.ask({ do: 'close', channel: dc.id });
        await until('close', () => dc.readyState === 'closed');
        sender.stop();
        const report = (await c.closedReport(`both ${i}`));
        check(report.sentMessages - received.messages <= 1, // the last may have been refused while the channel closed
          `both ${i}: the program sent ${report.sentMessages} messages, ${received.messages} arrived`);
        check(received.missed + received.late + received.doubled + received.corrupt === 0, `both ${i}: ${JSON.stringify(received.report())}`);
        check(report.received.missing + report.received.late + report.received.doubled + report.received.corrupt === 0,
          `both ${i}, at the program: ${JSON.stringify(report)}`);
      }
      return { number, rounds };
    });
  },

  // The program opens channels, and uses their number again after either side has closed them.
  async programOpens(offerBy, rounds) {
    return using(offerBy, async (c) => {
      let id, unsent = 0;
      for (let i = 0; i < rounds; i++) {
        await c.ask({ do: 'open', open: { label: `theirs ${i}`, protocol: 'echo', id, unordered: i % 2 === 1 } });
        const dc = await c.accept();
        check(dc.label === `theirs ${i}`, `label ${dc.label}`);
        check(dc.ordered === (i % 2 === 0), `ordered ${dc.ordered}`);
        if (id === undefined) id = dc.id;
        check(dc.id === id, `channel ${dc.id}, want ${id} again`);
        // Rarely, Chromium does not send the first message on a channel that it has just been told of, and counts
        // none as sent. What it has sent must have arrived.
        for (let sent = false; !sent;) {
          const answer = event(dc, 'message', 2000);
          dc.send('hello');
          sent = await answer.then((e) => {
            check(e.data === 'hello', 'another answer');
            return true;
          }, () => false);
          if (!sent) check(await messagesSent(c, dc) === 0 && ++unsent < 10, `round ${i}: no answer`);
        }
        const closed = event(dc, 'close');
        if (i % 3 === 0) await c.ask({ do: 'close', channel: dc.id });
        else dc.close();
        await closed;
        const report = await c.closedReport(`theirs ${i}`);
        check(report.received.messages === 1, JSON.stringify(report));
      }
      return { id, unsent };
    });
  },

  // With lost packets limited channels lose messages, but double none and keep their order; reliable ones lose none.
  async partial(offerBy, loss, count, size) {
    return using(offerBy, async (c) => {
      await c.ask({ do: 'loss', loss });
      const kinds = {
        reliable: {}, 'reliable unordered': { ordered: false },
        retransmits: { maxRetransmits: 0 }, 'retransmits unordered': { ordered: false, maxRetransmits: 0 },
        lifetime: { maxPacketLifeTime: 50 }, 'lifetime unordered': { ordered: false, maxPacketLifeTime: 50 },
      };
      const result = {};
      const one = async (name, options) => {
        const ordered = options.ordered !== false, reliable = name.startsWith('reliable');
        const dc = c.open(name, `both?size=${size}&count=${count}`, options);
        const tracker = track(dc);
        const sent = await new Sender(dc, { size, count }).done;
        // The program has sent everything when it says so; then a close brings what is under way, or gives it up.
        let there;
        const end = performance.now() + 60000;
        for (;;) {
          const state = await c.ask({ do: 'state' });
          there = state.channels.find((x) => x.label === name);
          if (there && there.sentMessages === count && there.buffered === 0 && dc.bufferedAmount === 0) break;
          check(performance.now() < end, `${name}: still sending: ${JSON.stringify(there)}, ${dc.bufferedAmount} bytes wait here`);
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        const closed = event(dc, 'close');
        dc.close();
        there = await c.closedReport(name);
        await closed;
        if (reliable) {
          wantAll(`${name}, browser to program`, there.received, sent, { ordered });
          wantAll(`${name}, program to browser`, tracker.report(), count, { ordered });
        }
        result[name] = [wantSome(`${name}, up`, there.received, sent, ordered), wantSome(`${name}, down`, tracker.report(), count, ordered)];
        if (!reliable) {
          check(result[name].every((n) => n > 0 && n < count), `${name}: lost ${result[name]} of ${count} messages: some must be lost, and some arrive`);
        }
      };
      await Promise.all(Object.entries(kinds).map(([name, options]) => one(name, options)));
      const state = await c.ask({ do: 'state' });
      check(state.dropped > 0, 'no packet was lost');
      result.dropped = state.dropped;
      await c.ask({ do: 'loss', loss: 0 });
      return result;
    });
  },

  // Both sides make a channel with an agreed number, without a word about it on the network.
  async negotiated(offerBy) {
    return using(offerBy, async (c) => {
      for (const id of [100, 101, 1022]) {
        const options = { negotiated: true, id, ordered: id % 2 === 0 };
        const dc = c.open(`agreed ${id}`, 'echo', options);
        await c.ask({ do: 'open', open: { label: `agreed ${id}`, protocol: 'echo', negotiated: true, id, unordered: !options.ordered } });
        if (dc.readyState !== 'open') await event(dc, 'open');
        for (const text of ['one', '', 'three']) {
          const answer = event(dc, 'message');
          dc.send(text);
          check((await answer).data === text, 'another answer');
        }
        const closed = event(dc, 'close');
        dc.close();
        await closed;
      }
      return {};
    });
  },

  // Neither side sends more than the other takes.
  async maxMessageSize(offerBy) {
    return using(offerBy, async (c) => {
      check(c.pc.sctp.maxMessageSize === maxMessage, `longest message ${c.pc.sctp.maxMessageSize}`);
      const dc = c.open('long', 'echo');
      await event(dc, 'open');
      let refused = false;
      try {
        dc.send(new Uint8Array(maxMessage + 1));
      } catch (e) {
        refused = e instanceof TypeError;
      }
      check(refused, 'the browser sent a message that is too long');
      const answer = event(dc, 'message');
      dc.send(new Uint8Array(maxMessage));
      check((await answer).data.byteLength === maxMessage, 'another length');
      return {};
    });
  },

  // The program must not send what a browser with a low limit does not take.
  async lowLimit() {
    const fetch = window.fetch;
    window.fetch = (path, o) => fetch(path, { ...o, body: o.body && o.body.replace(/max-message-size:\d+/, 'max-message-size:1000') });
    try {
      return await using('browser', async (c) => {
        let dc = c.open('fits', 'source?size=1000&count=10&close=1');
        const tracker = track(dc);
        await event(dc, 'close');
        wantAll('messages of 1000 bytes', tracker.report(), 10);
        dc = c.open('too long', 'source?size=1001&count=10&close=1');
        const none = track(dc);
        await event(dc, 'close');
        const report = await c.closedReport('too long');
        check(report.sentMessages === 0 && none.messages === 0, `${none.messages} messages arrived: ${JSON.stringify(report)}`);
        check(report.error, 'the program does not say why it sent nothing');
        return { error: report.error };
      });
    } finally {
      window.fetch = fetch;
    }
  },

  // A new RTCPeerConnection each time, offered by either side in turn, a few at a time.
  async handshakes(count, atOnce) {
    const times = [];
    let next = 0;
    const worker = async () => {
      for (let i = next++; i < count; i = next++) {
        const start = performance.now();
        const c = await Connection.connect(i % 2 ? 'program' : 'browser', 15000).catch((e) => { throw new Error(`handshake ${i}: ${e.message}`); });
        const dc = c.open('echo', 'echo');
        await event(dc, 'open');
        const answer = event(dc, 'message');
        dc.send(`hello ${i}`);
        check((await answer).data === `hello ${i}`, `handshake ${i}: another answer`);
        times.push(performance.now() - start);
        c.close();
      }
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    check(times.length === count, `${times.length} of ${count} handshakes`);
    times.sort((a, b) => a - b);
    return { count, median: Math.round(times[count >> 1]), worst: Math.round(times[count - 1]) };
  },

  // As many connections as the program takes, and one more.
  async places(most) {
    const all = await Promise.all(Array.from({ length: most }, (_, i) => Connection.connect(i % 2 ? 'program' : 'browser')));
    let refused = '';
    await Connection.connect().then((c) => c.close(), (e) => { refused = e.message; });
    check(refused.includes('at most'), `one more: ${refused || 'was taken'}`);
    // Each still works.
    await Promise.all(all.map(async (c) => {
      const dc = c.open('echo', 'echo');
      await event(dc, 'open');
      const answer = event(dc, 'message');
      dc.send('still here');
      await answer;
    }));
    window.all = all; // until the tab closes
    return { refused };
  },
};
window.scenarios = scenarios;
})();
