package conformance

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// What the peer, which is the script, chooses.
const (
	peerTag    = 0x50505050
	peerTSN    = 1000
	peerRWND   = 65536
	peerPort   = 5002
	localPort  = 5001
	peerCookie = "the cookie of the peer!!"
	udpPort    = 9899
)

var (
	localAddr = netip.MustParseAddr("10.0.0.1")
	peerAddr  = netip.MustParseAddr("10.0.0.2")
)

// runner runs one script.
type runner struct {
	t        testing.TB
	cfg      core.Config
	local    []netip.AddrPort
	peer     []netip.AddrPort // that the user gave
	peerInit string           // the parameters of the peer's INIT or INIT ACK
	jar      *cookie.Jar
	now      clock.Time
	assoc    *core.Assoc
	listener *core.Listener
	sent     []outPacket
	events   []core.Event
	drop     core.DropReason
	vars     map[string]uint32
	buf      []byte
	released map[string]int
	open     map[uint16]*tx.OpenMessage // given in part
	broken   error                      // the first packet that packetRules does not like

	tsn       uint32    // our initial TSN
	init      wire.Init // our last INIT or INIT ACK
	cookie    []byte    // the last cookie
	oldCookie []byte    // the one before
	// What RFC 4895 needs.
	peerParams []byte // the parameters of the peer's INIT or INIT ACK
	key        []byte // the endpoint pair shared key
	key2       []byte // that with number 2
	// the last heartbeat information, and the one before
	heartbeat, oldHeartbeat []byte
}

type outPacket struct {
	from netip.AddrPort
	to   netip.AddrPort
	ecn  uint8
	cut  bool // IP may fragment it
	data []byte
}

func newRunner(t testing.TB, id string) *runner {
	var seed [32]byte
	copy(seed[:], id)
	at := clock.Time(1000 * time.Second)
	return &runner{t: t, now: at, jar: cookie.NewJar(seed), vars: map[string]uint32{}, released: map[string]int{}, open: map[uint16]*tx.OpenMessage{},
		local: []netip.AddrPort{netip.AddrPortFrom(localAddr, udpPort)},
		peer:  []netip.AddrPort{netip.AddrPortFrom(peerAddr, udpPort)},
		// The timers of a script are those it is about.
		cfg: core.Config{HBInterval: -1, NoRACK: true, NoPacing: true, Congestion: cc.NewReno}}
}

// run runs a script to its end.
func (r *runner) run(s *script) error {
	if err := r.block(s.lines); err != nil {
		return err
	}
	if r.broken != nil {
		return r.broken
	}
	return r.quiet()
}

func (r *runner) block(lines []line) error {
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		var err error
		if n, ok := strings.CutPrefix(l.text, "repeat "); ok {
			end := i + 1
			for end < len(lines) && lines[end].text != "end" {
				end++
			}
			var times int
			if _, err = fmt.Sscan(n, &times); err == nil {
				for k := range times {
					r.vars["i"] = uint32(k)
					if err = r.block(lines[i+1 : end]); err != nil {
						return fmt.Errorf("turn %d: %w", k, err)
					}
				}
			}
			i = end
		} else {
			err = r.step(l.text)
		}
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", l.no, l.text, err)
		}
	}
	return nil
}

// quiet fails if something was sent that no line mentions.
func (r *runner) quiet() error {
	if len(r.sent) > 0 {
		return fmt.Errorf("unexpected packet: %s", wire.Describe(r.sent[0].data))
	}
	return nil
}

func (r *runner) step(s string) error {
	switch {
	case strings.HasPrefix(s, "<"):
		return r.expect(strings.TrimSpace(s[1:]))
	case s == "drain":
		r.sent = nil
		return nil
	}
	if f, ok := checks[strings.Fields(s)[0]]; ok { // what does not let anything be sent
		return r.check(f, s)
	}
	await := strings.HasPrefix(s, "await ")
	if s[0] != '>' && s[0] != '+' && !await {
		return r.act(s)
	}
	if err := r.quiet(); err != nil {
		return err
	}
	switch s[0] {
	case '>':
		s, more := strings.CutPrefix(s[1:], "+")
		return r.inject(s, !more)
	case '+':
		d, err := time.ParseDuration(s[1:])
		if err != nil {
			return err
		}
		r.advance(r.now+clock.Time(d), false)
		return nil
	}
	return r.act(s)
}

// advance lets time pass up to until; with wait only until something is sent.
func (r *runner) advance(until clock.Time, wait bool) {
	for n := 0; r.assoc != nil; n++ {
		if n > 100000 {
			r.t.Fatal("a hundred thousand timers: the core goes round in circles")
		}
		at := r.assoc.NextTimeout()
		if at == 0 || at > until {
			break
		}
		r.now = max(r.now, at)
		r.assoc.HandleTimeout(r.now)
		if r.poll(); wait && len(r.sent) > 0 {
			return
		}
	}
	r.now = max(r.now, until)
}

// poll collects what the end under test sends.
func (r *runner) poll() {
	a := r.assoc
	if a == nil {
		return
	}
	for n := 0; ; n++ {
		if n > 10000 {
			r.t.Fatal("ten thousand packets at once")
		}
		out, tx, ok := a.PollTransmit(r.now, r.buf[:0], 16)
		if !ok {
			break
		}
		for b := out; len(b) > 0; {
			k := min(tx.SegSize, len(b))
			r.out(outPacket{tx.Local, tx.Remote, tx.ECN, tx.Fragment, append([]byte(nil), b[:k]...)})
			b = b[k:]
		}
		r.buf = out
	}
	for {
		ev, ok := a.PollEvent()
		if !ok {
			break
		}
		r.events = append(r.events, ev)
	}
	for _, x := range a.TakeReleases(nil) {
		x.Owner.Released(x.Err)
	}
}

// out notes a packet and what may be needed of it.
func (r *runner) out(p outPacket) {
	r.sent = append(r.sent, p)
	if err := packetRules(p.data); err != nil && r.broken == nil {
		r.broken = fmt.Errorf("%w in %s", err, wire.Describe(p.data))
	}
	it := wire.NewChunks(p.data[wire.HeaderLen:])
	for it.Next() {
		switch c := it.Chunk(); c.Type {
		case wire.ChunkInit:
			r.init, _ = wire.ParseInit(c)
		case wire.ChunkInitAck:
			r.init, _ = wire.ParseInitAck(c)
			ps := wire.NewParams(r.init.Params)
			for ps.Next() {
				if p := ps.Param(); p.Type == wire.ParamStateCookie {
					r.oldCookie, r.cookie = r.cookie, append([]byte(nil), p.Value...)
				}
			}
		case wire.ChunkHeartbeat:
			if x, err := wire.ParseHeartbeat(c); err == nil {
				r.oldHeartbeat, r.heartbeat = r.heartbeat, append([]byte(nil), x.Info...)
			}
		}
	}
}

// inject hands a packet to the end under test.
func (r *runner) inject(s string, endBatch bool) error {
	head, chunks := splitChunks(s)
	f, err := splitFields(head)
	if err != nil {
		return err
	}
	h := &args{fields: f, r: r}
	tag := uint32(0)
	if len(chunks) == 0 || !strings.HasPrefix(chunks[0], "INIT") || strings.HasPrefix(chunks[0], "INIT ACK") {
		tag, _ = r.symbol("LT")
	}
	hd := wire.Header{SrcPort: uint16(h.num("sport", peerPort)), DstPort: uint16(h.num("dport", localPort)), VTag: h.num("tag", tag)}
	pkt := &core.Packet{ECN: uint8(h.num("ecn", 0))}
	pkt.Local = r.local[0]
	if s, ok := h.get("at"); ok {
		ip, err := netip.ParseAddr(s)
		if err != nil {
			return err
		}
		pkt.Local = netip.AddrPortFrom(ip, udpPort)
	}
	from := peerAddr
	if s, ok := h.get("from"); ok {
		if from, err = netip.ParseAddr(s); err != nil {
			return err
		}
	}
	pkt.Remote = netip.AddrPortFrom(from, uint16(h.num("udp", udpPort)))
	b := wire.AppendHeader(nil, hd)
	for _, c := range chunks {
		x, err := r.buildChunk(c)
		if err != nil {
			return err
		}
		b = append(b, x...)
	}
	r.sign(b)
	wire.SetChecksum(b)
	if h.has("damage") {
		b[len(b)-1] ^= 1
	}
	if h.has("zerosum") {
		copy(b[8:12], []byte{0, 0, 0, 0})
	}
	if h.err != nil {
		return h.err
	}
	pkt.Data = b
	r.deliver(hd, pkt, endBatch)
	return nil
}

// deliver finds out who a packet is for, as a driver does.
func (r *runner) deliver(h wire.Header, pkt *core.Packet, endBatch bool) {
	if a := r.assoc; a != nil && a.State() != core.Closed {
		r.drop = a.HandlePacket(r.now, pkt)
	} else {
		var res core.Result
		if r.listener != nil {
			res = r.listener.HandlePacket(r.now, pkt, nil)
		} else {
			res.Answer = core.HandleOOTB(nil, pkt, nil)
		}
		r.drop = res.Drop
		if len(res.Reply) > 0 {
			r.out(outPacket{pkt.Local, pkt.Remote, 0, false, append([]byte(nil), res.Reply...)})
		}
		if res.New != nil {
			r.assoc = res.New
		}
	}
	if endBatch && r.assoc != nil {
		r.assoc.EndBatch(r.now)
		r.poll()
	}
}

// owner counts releases.
type owner struct {
	r    *runner
	name string
}

func (o owner) Released(err error) {
	text := "nil"
	if err != nil {
		text = err.Error()
	}
	o.r.released[text]++
}

// TestScripts runs all scripts.
func TestScripts(t *testing.T) {
	for _, s := range load(t) {
		t.Run(s.id, func(t *testing.T) {
			if err := newRunner(t, s.id).run(s); err != nil {
				t.Errorf("%s: %v\nRFC %s, Section %s: %q", s.file, err, s.rfc(), strings.TrimPrefix(s.section(), s.rfc()+"/"), s.quote)
			}
		})
	}
}
