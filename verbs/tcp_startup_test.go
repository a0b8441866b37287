package verbs

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpmpa"
	"github.com/weftstack/weft/rdmap"
)

// firstSegment returns the first DDP segment that comes over a connection
// without markers.
func firstSegment(t *testing.T, c net.Conn) []byte {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(5 * time.Minute))
	var stream []byte
	buf := make([]byte, 4096)
	for {
		if u, n, err := ddpmpa.NewDeframer(false, true).Next(stream); err != nil {
			t.Fatal(err)
		} else if n > 0 {
			return bytes.Clone(u)
		}
		n, err := c.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		stream = append(stream, buf[:n]...)
	}
}

func TestReadyToReceiveIndications(t *testing.T) {
	// RFC 6581, Section 9.2: the initiator generates what the responder
	// names. A Write is preferred to a Read, and that to a Send.
	for _, tt := range []struct {
		name string
		e    ddp.Enhanced
		want []byte
	}{
		{"write", ddp.Enhanced{PeerToPeer: true, RTRWrite: true, RTRRead: true, RTRSend: true, IRD: 1},
			ddp.AppendHeader(nil, &ddp.Header{Tagged: true, Last: true, Ctrl: rdmap.Control(rdmap.Write)})},
		{"read", ddp.Enhanced{PeerToPeer: true, RTRRead: true, RTRSend: true, IRD: 1}, nil},
		{"send", ddp.Enhanced{PeerToPeer: true, RTRSend: true},
			ddp.AppendHeader(nil, &ddp.Header{Last: true, Ctrl: rdmap.Control(rdmap.Send), MSN: 1})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newTCPNode(t, Config{})
			qp := a.qp(QPConfig{SignalAll: true})
			c, err := answerTCP(t, ddpmpa.Frame{Reply: true, CRC: true, Revision: 2, IsEnhanced: true, Enhanced: tt.e}, qp, a)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			seg := firstSegment(t, c)
			if tt.want != nil && !bytes.Equal(seg, tt.want) {
				t.Errorf("the indication is % x, want % x", seg, tt.want)
			}
			if tt.want == nil {
				h, p, _ := ddp.ParseHeader(seg)
				r, ok := rdmap.ParseReadRequest(p)
				if h.Tagged || h.QN != rdmap.QueueReadRequest || h.MSN != 1 || !ok || r.Size != 0 {
					t.Errorf("the indication is % x", seg)
				}
				b := ddp.AppendHeader(nil, &ddp.Header{Tagged: true, Last: true, Ctrl: rdmap.Control(rdmap.ReadResponse), STag: r.SinkSTag, TO: r.SinkTO})
				if _, err := c.Write(ddpmpa.NewFramer(false, true).Append(nil, b, nil)); err != nil {
					t.Fatal(err)
				}
			}
			// No work request of the consumer has anything to do with it.
			if err := qp.PostSend(SendWR{ID: 7, Op: OpSend, Inline: []byte("x")}); err != nil {
				t.Fatal(err)
			}
			want(t, a.cq, 7, StatusSuccess)
			qp.Close()
			<-qp.Done()
		})
	}
}

// The ready-to-receive indication is not the consumer's: it takes no place in the send
// queue, and when the connection ends before it is answered nothing completes.
func TestIndicationsDoNotComplete(t *testing.T) {
	a := newTCPNode(t, Config{})
	qp := a.qp(QPConfig{SendDepth: 1, SignalAll: true})
	c, err := answerTCP(t, ddpmpa.Frame{Reply: true, CRC: true, Revision: 2, IsEnhanced: true,
		Enhanced: ddp.Enhanced{PeerToPeer: true, RTRRead: true, IRD: 1}}, qp, a)
	if err != nil {
		t.Fatal(err)
	}
	firstSegment(t, c) // the Read, which gets no answer
	if q := qp.Query(); q.SendQueued != 0 {
		t.Errorf("%d work requests queued", q.SendQueued)
	}
	if err := qp.PostSend(SendWR{ID: 7, Op: OpSend, Inline: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	want(t, a.cq, 7, StatusSuccess)
	c.Close()
	<-qp.Done()
	var wc [4]WC
	for _, c := range wc[:a.cq.Poll(wc[:])] {
		t.Errorf("completion of what was not posted: ID %d, %v, %v", c.ID, c.Op, c.Status)
	}
}

func TestRequestOffersIndications(t *testing.T) {
	// RFC 6581, Section 9.2: A, and each of B, C and D that is supported.
	for _, tt := range []struct {
		name string
		cfg  Config
		qc   QPConfig
		want ddpmpa.Frame
	}{
		{"all", Config{}, QPConfig{IRD: 3, ORD: 4}, ddpmpa.Frame{Revision: 2, IsEnhanced: true,
			Enhanced: ddp.Enhanced{PeerToPeer: true, RTRSend: true, RTRWrite: true, RTRRead: true, IRD: 3, ORD: 4}}},
		{"no reads", Config{}, QPConfig{IRD: 3, ORD: -1}, ddpmpa.Frame{Revision: 2, IsEnhanced: true,
			Enhanced: ddp.Enhanced{PeerToPeer: true, RTRSend: true, RTRWrite: true, IRD: 3}}},
		// Section 10: no enhanced format where nothing of it is wanted.
		{"revision 1", Config{TCPRevision1: true}, QPConfig{}, ddpmpa.Frame{Revision: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nl, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer nl.Close()
			got := make(chan ddpmpa.Frame, 1)
			go func() {
				defer close(got)
				c, err := nl.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				if r, err := ddpmpa.Respond(testContext(t), c.(*net.TCPConn), ddpmpa.Params{}); err == nil {
					got <- r.Frame
				}
			}()
			a := newTCPNode(t, tt.cfg)
			if _, err := a.dev.ConnectTCP(testContext(t), nl.Addr().String(), a.qp(tt.qc), ConnParams{}); err == nil {
				t.Error("connected to nobody")
			}
			f := <-got
			if f.Revision != tt.want.Revision || f.IsEnhanced != tt.want.IsEnhanced || f.Enhanced != tt.want.Enhanced {
				t.Errorf("request %+v, want %+v", f, tt.want)
			}
		})
	}
}

func TestFallbackToRevision1(t *testing.T) {
	// RFC 6581, Section 10: a responder that does not know enhanced requests
	// closes the connection.
	for _, fallback := range []bool{false, true} {
		a, b := newTCPNode(t, Config{TCPFallback: fallback}), newTCPNode(t, Config{})
		nl, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer nl.Close()
		served := make(chan error, 1)
		go func() {
			for {
				c, err := nl.Accept()
				if err != nil {
					served <- err
					return
				}
				frame := make([]byte, ddpmpa.FrameHeaderLen)
				io.ReadFull(c, frame)
				if frame[17] == ddpmpa.Revision2 {
					c.(*net.TCPConn).CloseWrite()
					io.Copy(io.Discard, c)
					c.Close()
					continue
				}
				_, err = c.Write(ddpmpa.AppendFrame(nil, &ddpmpa.Frame{Reply: true, CRC: true, Revision: 1, Private: []byte("old")}))
				defer c.Close()
				served <- err
				return
			}
		}()
		qp := a.qp(QPConfig{})
		info, err := a.dev.ConnectTCP(testContext(t), nl.Addr().String(), qp, ConnParams{})
		if fallback {
			if err != nil || string(info.PrivateData) != "old" || info.PeerIRD != -1 {
				t.Errorf("with fallback: %+v, %v", info, err)
			}
		} else if !errors.Is(err, ddpmpa.ErrNoReply) || !errors.Is(err, ddpmpa.FaultLost) {
			t.Errorf("without fallback: %v", err)
		}
		nl.Close()
		<-served
		qp.Close()
		<-qp.Done()
		b.dev.Close()
	}
}
