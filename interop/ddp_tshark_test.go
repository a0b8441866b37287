package interop

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/rdmap"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
	"github.com/weftstack/weft/verbs"
)

// The dissector that comes with the project.
const ddpScript = "lua_script:../docs/ddp-sctp.lua"

// TestDissectorNamesAll has our dissector decode one message of each kind, made
// with our encoders.
func TestDissectorNamesAll(t *testing.T) {
	bounded(t)
	capture := []byte{0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 101}
	var want []string
	add := func(ppid uint32, msg []byte, name string) {
		pkt := wire.AppendHeader(nil, wire.Header{SrcPort: 5001, DstPort: 5002, VTag: 1})
		n := len(want)
		pkt = wire.AppendData(pkt, wire.Data{TSN: uint32(n), SID: 7, PPID: ppid, Begin: true, End: true, Unordered: true,
			Payload: append(binary.BigEndian.AppendUint16(nil, uint16(n)), msg...)})
		wire.SetChecksum(pkt)
		capture = appendRecord(capture, pkt)
		want = append(want, fmt.Sprintf("DDP-SSN %d, %s", n, name))
	}
	e := ddp.Enhanced{PeerToPeer: true, RTRWrite: true, IRD: 5, ORD: 6}
	for f := ddpsctp.Initiate; f <= ddpsctp.EnhancedReject; f++ {
		add(ddpsctp.PPIDControl, ddpsctp.AppendControl(nil, &ddpsctp.Control{Function: f, Enhanced: e, Private: []byte("hello")}), "DDP session "+f.String())
	}
	read := rdmap.AppendReadRequest(nil, &rdmap.ReadRequestHeader{SinkSTag: 1, SinkTO: 2, Size: 3, SrcSTag: 4, SrcTO: 5})
	bad := ddp.Header{Tagged: true, Last: true, Ctrl: rdmap.Control(rdmap.Write), STag: 9}
	payload := map[rdmap.Opcode][]byte{
		rdmap.ReadRequest: read, rdmap.Immediate: make([]byte, 8), rdmap.ImmediateSE: make([]byte, 8),
		rdmap.AtomicRequest:  rdmap.AppendAtomicRequest(nil, &rdmap.AtomicRequestHeader{Op: rdmap.AtomicCmpSwap, ID: 1, STag: 2}),
		rdmap.AtomicResponse: rdmap.AppendAtomicResponse(nil, 1, 2),
		rdmap.Terminate:      rdmap.AppendTerminate(nil, &rdmap.TerminateHeader{Fault: ddp.FaultSTag, HasLength: true, SegmentLength: 4, HasDDP: true, DDP: bad}),
	}
	for op := rdmap.Write; op <= rdmap.AtomicResponse; op++ {
		h := ddp.Header{Last: true, Ctrl: rdmap.Control(op), QN: 1, MSN: 11, MO: 22, STag: 0xABC, TO: 0x1234}
		h.Tagged = op == rdmap.Write || op == rdmap.ReadResponse
		name := op.String() + " QN 1 MSN 11 MO 22"
		if h.Tagged {
			name = op.String() + " STag 00000abc TO 0000000000001234"
		}
		add(ddpsctp.PPIDSegment, append(ddp.AppendHeader(nil, &h), payload[op]...), name)
	}
	file := filepath.Join(t.TempDir(), "vectors.pcap")
	if err := os.WriteFile(file, capture, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-X", ddpScript}
	if bad := tshark(t, file, append(args, "-Y", "_ws.malformed || _ws.expert")...); bad != nil {
		t.Errorf("the decoder objects to %d packets: %s", len(bad), bad[0])
	}
	var got []string
	for _, line := range tshark(t, file, append(args, "-V")...) {
		if _, text, ok := strings.Cut(line, "DDP over SCTP, "); ok {
			got = append(got, strings.TrimPrefix(text, "session control, "))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d messages decoded, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("message %d is %q, want %q", i, got[i], want[i])
		}
	}
	// Fields, by their values.
	for filter, n := range map[string]int{
		"ddp_sctp.stream == 7": len(want), "ddp_sctp.opcode": 12, "ddp_sctp.function": 7, "ddp_sctp.ird == 5 && ddp_sctp.ord == 6 && ddp_sctp.p2p == 1": 2,
		"ddp_sctp.read.size == 3 && ddp_sctp.read.src_to == 5": 1, "ddp_sctp.term == 0x1100 && ddp_sctp.term.d == 1": 1,
		"ddp_sctp.stag == 0xabc && ddp_sctp.to == 0x1234": 2, "ddp_sctp.atomic.op == 2": 1, "ddp_sctp.queue == 1 && ddp_sctp.msn == 11 && ddp_sctp.mo == 22": 10,
	} {
		if found := tshark(t, file, append(args, "-Y", filter)...); len(found) != n {
			t.Errorf("%d messages with %s, want %d", len(found), filter, n)
		}
	}
}

// ddpMessage is a message of DDP over SCTP, as tshark found it.
type ddpMessage struct {
	flow             string // the sender and the stream
	tsn              int
	ssn              int
	opcode, function int // -1: not one
}

// ddpMessages reads the messages of a capture file, each once.
func ddpMessages(t *testing.T, file string) (ms []ddpMessage) {
	t.Helper()
	if bad := tshark(t, file, "-X", ddpScript, "-Y", "_ws.malformed || _ws.expert.severity == error || ddp_sctp.strange || ddp_sctp.short"); bad != nil {
		t.Errorf("the decoder objects to %d packets: %s", len(bad), bad[0])
	}
	seen := make(map[string]bool)
	for _, line := range tshark(t, file, "-X", ddpScript, "-Y", "ddp_sctp.ssn", "-T", "fields", "-E", "separator=;",
		"-e", "udp.srcport", "-e", "sctp.data_sid", "-e", "sctp.data_tsn_raw", "-e", "sctp.data_payload_proto_id", "-e", "ddp_sctp.ssn", "-e", "ddp_sctp.opcode", "-e", "ddp_sctp.function") {
		f := strings.Split(line, ";")
		split := func(i int) []string {
			if f[i] == "" {
				return nil
			}
			return strings.Split(f[i], ",")
		}
		sids, tsns, ppids, ssns, ops, fns := split(1), split(2), split(3), split(4), split(5), split(6)
		if len(ssns) != len(tsns) || len(ops)+len(fns) != len(tsns) {
			t.Fatalf("a chunk is not decoded: %q", line)
		}
		for i := range tsns {
			m := ddpMessage{flow: f[0] + " " + sids[i], opcode: -1, function: -1}
			m.tsn, m.ssn = number(t, tsns[i]), number(t, ssns[i])
			if number(t, ppids[i]) == int(ddpsctp.PPIDControl) {
				m.function, fns = number(t, fns[0]), fns[1:]
			} else {
				m.opcode, ops = number(t, ops[0]), ops[1:]
			}
			if key := f[0] + " " + tsns[i]; !seen[key] { // not a retransmission
				seen[key] = true
				ms = append(ms, m)
			}
		}
	}
	return ms
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// checkSequence checks that the DDP-SSNs of every stream and direction begin at
// 0 and have no gaps (RFC 5043, Section 6.1), in the order of their TSNs.
func checkSequence(t *testing.T, ms []ddpMessage) {
	t.Helper()
	flows := make(map[string][]ddpMessage)
	for _, m := range ms {
		flows[m.flow] = append(flows[m.flow], m)
	}
	for flow, ms := range flows {
		first := uint32(ms[0].tsn)
		slices.SortStableFunc(ms, func(a, b ddpMessage) int { return int(int32(uint32(a.tsn)-first) - int32(uint32(b.tsn)-first)) })
		next := 0
		for _, m := range ms {
			switch ddpsctp.Function(max(m.function, 0)) {
			case ddpsctp.Initiate, ddpsctp.EnhancedInitiate, ddpsctp.Accept, ddpsctp.EnhancedAccept, ddpsctp.Reject, ddpsctp.EnhancedReject:
				next = 0
			}
			if m.ssn != next {
				t.Errorf("stream %s: DDP-SSN %d, want %d", flow, m.ssn, next)
			}
			next = m.ssn + 1
		}
	}
}

// TestDissectorFollowsRping captures a run of `weft rping`.
func TestDissectorFollowsRping(t *testing.T) {
	bounded(t)
	ctx, cancel := context.WithTimeout(within(t), 2*commandTime)
	defer cancel()
	port := testenv.FreePort(t)
	server := startRping(ctx, t, port, "--sctp", "-S5000")
	file := filepath.Join(t.TempDir(), "rping.pcap")
	const count = 30
	if _, errs, status := weft(t, "rping", "-cV", fmt.Sprintf("-C%d", count), "-a127.0.0.1", "--sctp", "-p", fmt.Sprint(port), "-S5000", "--pcap", file); status != 0 {
		t.Fatal(errs)
	}
	server.end(t)
	ms := ddpMessages(t, file)
	checkSequence(t, ms)
	ops, fns := tally(ms)
	if fns[5] != 1 || fns[6] != 1 || fns[4] == 0 || ops[rdmap.ReadRequest] != count || ops[rdmap.ReadResponse] < count || ops[rdmap.Write] < count || ops[rdmap.Send] != 4*count {
		t.Errorf("messages %v, session control %v", ops, fns)
	}
}

func tally(ms []ddpMessage) (ops map[rdmap.Opcode]int, fns map[int]int) {
	ops, fns = make(map[rdmap.Opcode]int), make(map[int]int)
	for _, m := range ms {
		if m.opcode >= 0 {
			ops[rdmap.Opcode(m.opcode)]++
		} else {
			fns[m.function]++
		}
	}
	return ops, fns
}

// endsSession reports whether there is a DDP Stream Session Terminate in a packet.
func endsSession(packet []byte) bool {
	for it := wire.NewChunks(packet[wire.HeaderLen:]); it.Next(); {
		d, err := wire.ParseData(it.Chunk())
		if it.Chunk().Type != wire.ChunkData || err != nil || d.PPID != ddpsctp.PPIDControl || len(d.Payload) < 2 {
			continue
		}
		if c, ok := ddpsctp.ParseControl(d.Payload[2:]); ok && c.Function == ddpsctp.Terminate {
			return true
		}
	}
	return false
}

// TestDissectorFollowsVerbs captures a program that uses every operation.
func TestDissectorFollowsVerbs(t *testing.T) {
	bounded(t)
	if _, err := exec.LookPath("tshark"); err != nil {
		testenv.Lacking(t, "tshark not found: install Debian's tshark")
	}
	ctx, cancel := context.WithTimeout(within(t), 2*commandTime)
	defer cancel()
	file := newPacketFile(t)
	over := make(chan struct{})
	var once sync.Once
	tap := func(e sctp.TapEvent) {
		file.tap(e)
		if e.Sent && endsSession(e.Data) {
			once.Do(func() { close(over) })
		}
	}
	open := func() (*verbs.Device, *verbs.PD, *verbs.CQ) {
		tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Tap: tap})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		dev, err := verbs.Open(verbs.Config{Transport: tr})
		if err != nil {
			t.Fatal(err)
		}
		cq, err := dev.NewCQ(100)
		if err != nil {
			t.Fatal(err)
		}
		return dev, dev.AllocPD(), cq
	}
	da, pa, ca := open()
	db, pb, cb := open()
	l, err := db.Listen()
	if err != nil {
		t.Fatal(err)
	}
	connect := func(accept bool) (qa, qb *verbs.QP) {
		qa, err := pa.NewQP(verbs.QPConfig{SendCQ: ca, RecvCQ: ca})
		if err != nil {
			t.Fatal(err)
		}
		qb, err = pb.NewQP(verbs.QPConfig{SendCQ: cb, RecvCQ: cb})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			req, err := l.Accept(ctx)
			if err == nil && accept {
				err = req.Accept(qb, verbs.ConnParams{})
			} else if err == nil {
				err = req.Reject([]byte("no"))
			}
			done <- err
		}()
		if _, err := da.Connect(ctx, db.Addr(), qa, verbs.ConnParams{PrivateData: []byte("hello")}); (err == nil) != accept {
			t.Fatalf("Connect: %v", err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return qa, qb
	}
	connect(false)
	qa, qb := connect(true)
	src, err := pa.Register(bytes.Repeat([]byte("0123456789"), 20000), verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	dst, err := pb.Register(make([]byte, src.Len()), verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic)
	if err != nil {
		t.Fatal(err)
	}
	scoped := func() uint32 {
		mr, err := pb.RegisterFor(qb, make([]byte, 8), verbs.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		return mr.STag()
	}
	for range 6 {
		if err := qb.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{dst.Slice(0, 100)}}); err != nil {
			t.Fatal(err)
		}
	}
	all, word, hi := src.Slice(0, src.Len()), src.Slice(0, 8), []byte("hi")
	wrs := []verbs.SendWR{
		{Op: verbs.OpWrite, SGL: []verbs.SGE{all}, Remote: dst.Remote()},
		{Op: verbs.OpRead, SGL: []verbs.SGE{all}, Remote: dst.Remote()},
		{Op: verbs.OpSend, Inline: hi},
		{Op: verbs.OpSend, Inline: hi, Flags: verbs.Solicited},
		{Op: verbs.OpSendInvalidate, Inline: hi, Invalidate: scoped()},
		{Op: verbs.OpSendInvalidate, Inline: hi, Invalidate: scoped(), Flags: verbs.Solicited},
		{Op: verbs.OpImm, Imm: 7},
		{Op: verbs.OpImm, Imm: 7, Flags: verbs.Solicited},
		{Op: verbs.OpFetchAdd, SGL: []verbs.SGE{word}, Remote: dst.Remote(), Operand: 1},
	}
	for i := range wrs {
		wrs[i].Flags |= verbs.Signaled
		if err := qa.PostSend(wrs[i]); err != nil {
			t.Fatal(i, err)
		}
		var wc [1]verbs.WC
		if _, err := ca.Wait(ctx, wc[:]); err != nil || wc[0].Status != verbs.StatusSuccess {
			t.Fatal(i, err, wc[0].Err())
		}
	}
	// One send more than there are receives ends it with a Terminate message.
	if err := qa.PostSend(verbs.SendWR{Op: verbs.OpSend, Inline: hi}); err != nil {
		t.Fatal(err)
	}
	for _, done := range []<-chan struct{}{qa.Done(), qb.Done(), over} {
		select {
		case <-done:
		case <-ctx.Done():
			t.Fatal("the queue pair goes on")
		}
	}
	da.Close()
	db.Close()
	file.end()
	ms := ddpMessages(t, file.name)
	checkSequence(t, ms)
	ops, fns := tally(ms)
	for op := rdmap.Write; op <= rdmap.AtomicResponse; op++ {
		if ops[op] == 0 {
			t.Errorf("no message with opcode %v", op)
		}
	}
	if fns[4] == 0 || fns[5] != 2 || fns[6] != 1 || fns[7] != 1 {
		t.Errorf("session control %v", fns)
	}
}
