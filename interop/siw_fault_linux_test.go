package interop

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpmpa"
	"github.com/weftstack/weft/rdmap"
	"github.com/weftstack/weft/verbs"
)

// rawMPA is our end of an MPA connection that sends what it is told, right or
// wrong.
type rawMPA struct {
	t    *testing.T
	conn net.Conn
	tx   *ddpmpa.Framer
}

// rawConnect connects to the peer's listener and has it accept.
func rawConnect(t *testing.T, p *siwPeer, addr string, recvs int) *rawMPA {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, siwPatience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(2 * siwPatience))
	r := &rawMPA{t, conn, ddpmpa.NewFramer(false, true)}
	conn.Write(ddpmpa.AppendFrame(nil, &ddpmpa.Frame{CRC: true, Revision: ddpmpa.Revision2, IsEnhanced: true,
		Enhanced: ddp.Enhanced{PeerToPeer: true, RTRWrite: true, IRD: 4, ORD: 4}}))
	p.do("request")
	for i := range recvs {
		p.do("recv %d %d 64", i, 64*i)
	}
	p.begin("accept 4 4 -")
	reply := make([]byte, ddpmpa.FrameHeaderLen+ddp.EnhancedLen)
	if _, err := io.ReadFull(conn, reply); err != nil {
		t.Fatal(err)
	}
	f, _, ok, err := ddpmpa.ParseFrame(reply, true)
	if !ok || err != nil || f.Rejected || !f.CRC || !f.Enhanced.PeerToPeer || !f.Enhanced.RTRWrite || f.Enhanced.IRD != 4 || f.Enhanced.ORD != 4 {
		t.Fatalf("reply % x: %+v, %v", reply, f, err)
	}
	// The indication, until the peer wakes up.
	for began := time.Now(); ; {
		r.send(ddp.Header{Tagged: true, Last: true, Ctrl: rdmap.Control(rdmap.Write)}, nil)
		p.conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		if _, err := p.r.Peek(1); err == nil {
			break
		}
		if time.Since(began) > siwPatience {
			t.Fatal("the peer does not wake up")
		}
	}
	p.conn.SetReadDeadline(time.Now().Add(siwPatience))
	if answer, ok := p.end(); !ok {
		t.Fatalf("peer: accept: %s", answer)
	}
	return r
}

func (r *rawMPA) send(h ddp.Header, payload []byte) { r.write(ddp.AppendHeader(nil, &h), payload) }

func (r *rawMPA) write(header, payload []byte) {
	r.t.Helper()
	if _, err := r.conn.Write(r.tx.Append(nil, header, payload)); err != nil {
		r.t.Error(err)
	}
}

// rawEnd is what the peer answers.
type rawEnd struct {
	header rdmap.TerminateHeader
	word   [4]byte        // of the Terminate message, as it came
	codes  []rdmap.Opcode // of other messages
	found  bool           // there is a Terminate message
}

// end returns what comes until a Terminate message or, with reads, a response.
func (r *rawMPA) end(reads bool) (e rawEnd) {
	r.t.Helper()
	d := ddpmpa.NewDeframer(false, true)
	var stream []byte
	buf := make([]byte, 4096)
	for {
		for {
			u, n, err := d.Next(stream)
			if err != nil {
				r.t.Fatalf("% x: %v", stream, err)
			}
			if n == 0 {
				break
			}
			stream = stream[n:]
			h, p, _ := ddp.ParseHeader(u)
			if h.Tagged || h.QN != rdmap.QueueTerminate || len(p) < 4 {
				if e.codes = append(e.codes, rdmap.Opcode(h.Ctrl&15)); reads {
					return e
				}
				continue
			}
			copy(e.word[:], p)
			if e.header, e.found = rdmap.ParseTerminate(p); !e.found {
				r.t.Fatalf("Terminate message % x", p)
			}
			return e
		}
		n, err := r.conn.Read(buf)
		if err != nil {
			return e // siw resets the connection
		}
		stream = append(stream, buf[:n]...)
	}
}

// siwOurFaults sends what is wrong, by hand, and checks what siw makes of it.
func siwOurFaults(t *testing.T, g *siw) {
	p := g.newPeer(t)
	readable := siwMemory(t, p, "mr2", 4096, "r") // of another protection domain
	mr := siwMemory(t, p, "mr", 4096, "w")
	outside := p.listen(g)

	write := ddp.Header{Tagged: true, Last: true, Ctrl: rdmap.Control(rdmap.Write), STag: mr.STag, TO: mr.TO}
	send := ddp.Header{Last: true, Ctrl: rdmap.Control(rdmap.Send), MSN: 1}
	request := ddp.Header{Last: true, Ctrl: rdmap.Control(rdmap.ReadRequest), QN: rdmap.QueueReadRequest, MSN: 1}
	with := func(h ddp.Header, change func(*ddp.Header)) ddp.Header { change(&h); return h }
	read := func(stag uint32, to uint64) []byte {
		return rdmap.AppendReadRequest(nil, &rdmap.ReadRequestHeader{SinkSTag: 0x100, SinkTO: 0, Size: 8, SrcSTag: stag, SrcTO: to})
	}
	version := func(h ddp.Header) []byte { b := ddp.AppendHeader(nil, &h); b[0] = b[0]&^3 | 2; return b }
	data := []byte("12345678")
	for _, tt := range []struct {
		name    string
		header  ddp.Header
		raw     []byte // instead of header
		payload []byte
		want    ddp.Fault
		rfc     ddp.Fault // what RFC 5040 and RFC 5041 have, if siw differs
		badCRC  bool
		answers bool // siw answers instead
	}{
		{name: "write: invalid STag", header: with(write, func(h *ddp.Header) { h.STag ^= 0x5a5a00 }), payload: data, want: ddp.FaultSTag},
		{name: "write: bounds", header: with(write, func(h *ddp.Header) { h.TO += 4090 }), payload: data, want: ddp.FaultBounds},
		{name: "write: below the buffer", header: with(write, func(h *ddp.Header) { h.TO -= 8 }), payload: data, want: ddp.FaultBounds},
		{name: "write: TO wraps", header: with(write, func(h *ddp.Header) { h.TO = 1<<64 - 4 }), payload: data, want: ddp.FaultLocal, rfc: ddp.FaultWrap},
		{name: "write: other protection domain", header: with(write, func(h *ddp.Header) { h.STag, h.TO = readable.STag, readable.TO }), payload: data, want: ddp.FaultNotAssociated},
		{name: "write: DDP version", raw: version(write), payload: data, want: ddp.FaultTaggedVersion},
		{name: "read: invalid STag", header: request, payload: read(mr.STag^0x5a5a00, mr.TO), want: rdmap.FaultSTag},
		{name: "read: bounds", header: request, payload: read(mr.STag, mr.TO+4090), want: rdmap.FaultBounds},
		{name: "read: access rights", header: request, payload: read(mr.STag, mr.TO), answers: true, rfc: rdmap.FaultAccess},
		{name: "read: other protection domain", header: request, payload: read(readable.STag, readable.TO), want: rdmap.FaultNotAssociated},
		{name: "read: MSN", header: with(request, func(h *ddp.Header) { h.MSN = 9 }), payload: read(mr.STag, mr.TO), want: ddp.FaultMSN},
		{name: "send: queue number", header: with(send, func(h *ddp.Header) { h.QN = 7 }), payload: data, want: ddp.FaultQN},
		{name: "send: sequence number", header: with(send, func(h *ddp.Header) { h.MSN = 1001 }), payload: data, want: ddp.FaultMSN},
		{name: "send: message offset", header: with(send, func(h *ddp.Header) { h.MO = 5 }), payload: data, want: ddp.FaultMO},
		{name: "send: too long", header: send, payload: make([]byte, 65), want: ddp.FaultNoBuffer, rfc: ddp.FaultTooLong},
		{name: "send: DDP version", raw: version(send), payload: data, want: ddp.FaultUntaggedVersion},
		{name: "RDMAP version", header: with(send, func(h *ddp.Header) { h.Ctrl |= 0xc0 }), payload: data, want: siwVersion, rfc: rdmap.FaultVersion},
		{name: "opcode", header: with(send, func(h *ddp.Header) { h.Ctrl = 0x4c }), payload: data, want: siwOpcode, rfc: rdmap.FaultOpcode},
		{name: "immediate", header: with(send, func(h *ddp.Header) { h.Ctrl = rdmap.Control(rdmap.Immediate) }), payload: data, want: siwOpcode, rfc: rdmap.FaultOpcode},
		{name: "CRC", header: send, payload: data, want: ddpmpa.FaultCRC, badCRC: true},
	} {
		g.row(t, tt.name, func(t *testing.T) {
			r := rawConnect(t, p, outside, 2)
			header := tt.raw
			if header == nil {
				header = ddp.AppendHeader(nil, &tt.header)
			}
			if tt.badCRC {
				b := r.tx.Append(nil, header, tt.payload)
				b[len(b)-1] ^= 1
				r.conn.Write(b)
			} else {
				r.write(header, tt.payload)
			}
			e := r.end(tt.answers)
			if e.found == tt.answers || e.header.Fault != tt.want {
				t.Errorf("siw terminates with %v (% x, %v), want %v", e.header.Fault, e.word, e.codes, tt.want)
			}
			if tt.rfc != 0 {
				t.Logf("quirk of siw: %v %v where the RFCs have %v", e.header.Fault, e.codes, tt.rfc)
			}
		})
	}
	g.row(t, "send: no buffer", func(t *testing.T) {
		r := rawConnect(t, p, outside, 0)
		r.send(send, data)
		if e := r.end(false); e.header.Fault != ddp.FaultNoBuffer {
			t.Errorf("siw terminates with %v (% x)", e.header.Fault, e.word)
		}
	})
	g.row(t, "send: invalid STag to invalidate", func(t *testing.T) {
		// Quirk of siw: its receive fails, but it sends no Terminate message.
		r := rawConnect(t, p, outside, 1)
		r.send(with(send, func(h *ddp.Header) { h.Ctrl, h.Word = rdmap.Control(rdmap.SendInv), mr.STag^0x5a5a00 }), data)
		if got, want := p.do(siwPoll), "0 9 "; !strings.HasPrefix(got, want) { // IBV_WC_REM_INV_REQ_ERR
			t.Errorf("the peer's receive ends as %q, want %q", got, want)
		}
	})
	for _, tt := range []struct {
		name   string
		rights string
		wr     verbs.SendWR
		beyond bool
		want   ddp.Fault
	}{
		{"through verbs: bounds", "rw", verbs.SendWR{Op: verbs.OpWrite, Inline: data}, true, ddp.FaultBounds},
		// RFC 5040, Section 4.8 has 0/1/02 for this; quirk of siw.
		{"through verbs: access rights", "r", verbs.SendWR{Op: verbs.OpWrite, Inline: data}, false, ddp.FaultSTag},
	} {
		g.row(t, tt.name, func(t *testing.T) {
			c := connectSiw(t, g, siwOptions{rights: tt.rights})
			tt.wr.Flags, tt.wr.Remote = verbs.Signaled, c.remote
			if tt.beyond {
				tt.wr.Remote = c.remote.At(c.remote.Len - 7)
			}
			c.post(tt.wr)
			select {
			case <-c.qp.Done():
			case <-c.ctx.Done():
				t.Fatal("the queue pair goes on")
			}
			var te *verbs.TerminateError
			if err := c.qp.Err(); !errors.As(err, &te) || !te.ByPeer || te.Header.Fault != tt.want {
				t.Errorf("the queue pair ends with %v, want %v", err, tt.want)
			}
		})
	}
}

// A Terminate message of siw without a DDP header does not show that its first
// word is reversed: 0/2/05 and 0/2/06 come as these. See rdmap.ParseTerminate.
const (
	siwVersion ddp.Fault = 0x2005
	siwOpcode  ddp.Fault = 0x2006
)

// siwTheirFaults has the peer do wrong, as far as verbs let it, and checks what
// we make of it, and that the peer understands.
func siwTheirFaults(t *testing.T, g *siw) {
	const statusSuccess = 0
	for _, tt := range []struct {
		name string
		post func(c *siwConnected, other uint32) string
		want ddp.Fault
	}{
		{"write: invalid STag", func(c *siwConnected, _ uint32) string { return fmt.Sprintf("write 1 0 8 %d 0", c.mr.STag()^0x5a5a00) }, ddp.FaultSTag},
		{"write: bounds", func(c *siwConnected, _ uint32) string { return fmt.Sprintf("write 1 0 8 %d 4090", c.mr.STag()) }, ddp.FaultBounds},
		{"write: TO wraps", func(c *siwConnected, _ uint32) string {
			return fmt.Sprintf("write 1 0 8 %d 0xfffffffffffffffc", c.mr.STag())
		}, ddp.FaultWrap},
		{"write: access rights", func(c *siwConnected, o uint32) string { return fmt.Sprintf("write 1 0 8 %d 0", o) }, ddp.FaultSTag},
		{"read: invalid STag", func(c *siwConnected, _ uint32) string { return fmt.Sprintf("read 1 0 8 %d 0", c.mr.STag()^0x5a5a00) }, rdmap.FaultSTag},
		{"read: bounds", func(c *siwConnected, _ uint32) string { return fmt.Sprintf("read 1 0 8 %d 4090", c.mr.STag()) }, rdmap.FaultBounds},
		{"read: access rights", func(c *siwConnected, o uint32) string { return fmt.Sprintf("read 1 0 8 %d 0", o) }, rdmap.FaultAccess},
		{"read: other protection domain", func(c *siwConnected, _ uint32) string {
			mr, err := c.dev.AllocPD().Register(make([]byte, 64), verbs.RemoteRead)
			if err != nil {
				c.t.Fatal(err)
			}
			return fmt.Sprintf("read 1 0 8 %d 0", mr.STag())
		}, rdmap.FaultNotAssociated},
		{"write: other protection domain", func(c *siwConnected, _ uint32) string {
			mr, err := c.dev.AllocPD().Register(make([]byte, 64), verbs.RemoteWrite)
			if err != nil {
				c.t.Fatal(err)
			}
			return fmt.Sprintf("write 1 0 8 %d 0", mr.STag())
		}, ddp.FaultNotAssociated},
		{"send: no buffer", func(*siwConnected, uint32) string { return "send 1 0 8" }, ddp.FaultNoBuffer},
		{"send: too long", func(c *siwConnected, _ uint32) string { c.recv(1, 0, 7); return "send 1 0 8" }, ddp.FaultTooLong},
		{"send with invalidate", func(c *siwConnected, _ uint32) string {
			c.recv(1, 0, 8)
			return fmt.Sprintf("sendinv 1 0 8 %d", c.mr.STag()^0x5a5a00)
		}, rdmap.FaultCannotInval},
	} {
		g.row(t, tt.name, func(t *testing.T) {
			c := connectSiw(t, g, siwOptions{accept: true, size: 4096, access: verbs.RemoteRead | verbs.RemoteWrite})
			right := verbs.RemoteRead
			if strings.HasPrefix(tt.name, "read") {
				right = verbs.RemoteWrite
			}
			other, err := c.pd.Register(make([]byte, 64), right)
			if err != nil {
				t.Fatal(err)
			}
			c.peer.do("%s", tt.post(c, other.STag()))
			select {
			case <-c.qp.Done():
			case <-c.ctx.Done():
				t.Fatal("the queue pair goes on")
			}
			var te *verbs.TerminateError
			if err := c.qp.Err(); !errors.As(err, &te) || te.ByPeer || te.Header.Fault != tt.want {
				t.Errorf("the queue pair ends with %v, want %v", err, tt.want)
			}
			// A write or send of siw is done when TCP has it, unless our answer comes
			// first; what waits for an answer ends with an error.
			wc := strings.Fields(c.peer.do(siwPoll))
			if strings.HasPrefix(tt.name, "read") && wc[1] == fmt.Sprint(statusSuccess) {
				t.Errorf("the peer's work request ends as %q", wc)
			}
			event := c.peer.do("event %d", siwPatience.Milliseconds())
			if !strings.HasPrefix(event, "RDMA_CM_EVENT_DISCONNECTED") {
				t.Errorf("the peer sees %q", event)
			}
		})
	}
}
