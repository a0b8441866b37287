package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
	dtlsnet "github.com/pion/dtls/v3/pkg/net"
	"github.com/pion/ice/v4"
	"github.com/pion/webrtc/v4"
	"github.com/weftstack/weft/sctp/wire"
)

// hostileHeap bounds what a hostile peer may make the program hold, in bytes of heap, with the peer's own end.
const hostileHeap = 48 << 20

// A rawPeer is the other end of DTLS: it writes whatever SCTP packets it likes.
type rawPeer struct {
	conn   *dtls.Conn
	agent  *ice.Agent
	tag    uint32        // of the program's packets to us
	theirs atomic.Uint32 // verification tag of ours
	tsn    uint32        // next
	reset  uint32        // next request number
	cookie []byte
	up     chan struct{} // closed by COOKIE ACK
	acked  atomic.Uint32 // cumulative TSN
	answer atomic.Uint32 // to this request for a reset the program has answered
	ended  chan struct{} // closed when the connection has ended
}

// offerSDP is the offer of a browser that will be the DTLS client.
const offerSDP = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n" +
	"m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=ice-ufrag:%s\r\na=ice-pwd:%s\r\n" +
	"a=fingerprint:sha-256 %s\r\na=setup:active\r\na=sctp-port:5000\r\na=max-message-size:262144\r\n%s"

// dialRaw connects to the program by ICE and DTLS.
func dialRaw(t *testing.T, ctx context.Context, p *program) *rawPeer {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	agent, err := ice.NewAgentWithOptions(ice.WithIncludeLoopback(), ice.WithIPFilter(net.IP.IsLoopback),
		ice.WithNetworkTypes([]ice.NetworkType{ice.NetworkTypeUDP4}), ice.WithMulticastDNSMode(ice.MulticastDNSModeDisabled))
	must(err)
	t.Cleanup(func() { agent.Close() })
	gathered := make(chan struct{})
	var lines strings.Builder
	must(agent.OnCandidate(func(c ice.Candidate) {
		if c == nil {
			close(gathered)
			return
		}
		fmt.Fprintf(&lines, "a=candidate:%s\r\n", c.Marshal())
	}))
	must(agent.GatherCandidates())
	<-gathered
	frag, password, err := agent.GetLocalUserCredentials()
	must(err)
	certificate, err := selfsign.GenerateSelfSigned()
	must(err)
	sum := sha256.Sum256(certificate.Certificate[0])
	var print []string
	for _, b := range sum {
		print = append(print, fmt.Sprintf("%02X", b))
	}
	offer := fmt.Sprintf(offerSDP, frag, password, strings.Join(print, ":"), lines.String())
	body, err := json.Marshal(description{SDP: webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}})
	must(err)
	status, answer := p.post(t, "/offer", string(body))
	if status != http.StatusOK {
		t.Fatalf("offer: status %d, %s", status, answer)
	}
	var d description
	must(json.Unmarshal([]byte(answer), &d))
	value := func(name string) string {
		m := regexp.MustCompile(`a=` + name + `:(\S+)`).FindStringSubmatch(d.SDP.SDP)
		if m == nil {
			t.Fatalf("no %s in %s", name, d.SDP.SDP)
		}
		return m[1]
	}
	for _, line := range regexp.MustCompile(`a=candidate:([^\r\n]+)`).FindAllStringSubmatch(d.SDP.SDP, -1) {
		c, err := ice.UnmarshalCandidate(line[1])
		must(err)
		must(agent.AddRemoteCandidate(c))
	}
	conn, err := agent.Dial(ctx, value("ice-ufrag"), value("ice-pwd"))
	must(err)
	secure, err := dtls.ClientWithOptions(dtlsnet.PacketConnFromConn(conn), conn.RemoteAddr(),
		dtls.WithCertificates(certificate), dtls.WithInsecureSkipVerify(true),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AES128_CM_HMAC_SHA1_80)) // pion/webrtc insists
	must(err)
	must(secure.HandshakeContext(ctx))
	r := &rawPeer{conn: secure, agent: agent, tag: rand.Uint32() | 1, tsn: 1000, up: make(chan struct{}), ended: make(chan struct{})}
	r.reset = r.tsn
	go r.read()
	t.Cleanup(func() {
		agent.Close() // without a word to the program
		<-r.ended
	})
	return r
}

// packet writes chunks as one packet, with a tag.
func (r *rawPeer) packet(tag uint32, chunks []byte) error {
	b := wire.AppendHeader(nil, wire.Header{SrcPort: 5000, DstPort: 5000, VTag: tag})
	b = append(b, chunks...)
	wire.SetChecksum(b)
	_, err := r.conn.Write(b)
	return err
}

// read takes what the handshake and the window need from the program's packets. It delivers nothing, and says so
// to nobody.
func (r *rawPeer) read() {
	defer close(r.ended)
	b := make([]byte, 64<<10)
	for {
		n, err := r.conn.Read(b)
		if err != nil {
			return
		}
		if n < wire.HeaderLen {
			continue
		}
		for it := wire.NewChunks(b[wire.HeaderLen:n]); it.Next(); {
			switch c := it.Chunk(); c.Type {
			case wire.ChunkInitAck:
				x, err := wire.ParseInitAck(c)
				if err != nil || r.theirs.Load() != 0 {
					continue
				}
				p, _ := wire.FindParam(x.Params, wire.ParamStateCookie)
				r.cookie = append([]byte(nil), p.Value...)
				r.theirs.Store(x.Tag)
				r.packet(x.Tag, wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: r.cookie}))
			case wire.ChunkCookieAck:
				select {
				case <-r.up:
				default:
					close(r.up)
				}
			case wire.ChunkSack:
				if x, err := wire.ParseSack(c); err == nil {
					r.acked.Store(x.CumTSN)
				}
			case wire.ChunkReConfig:
				if x, err := wire.ParseReConfig(c); err == nil {
					r.reconfig(x)
				}
			case wire.ChunkAbort:
				return
			}
		}
	}
}

// reconfig grants the program's resets, and notes its answers to ours.
func (r *rawPeer) reconfig(x wire.ReConfig) {
	for it := wire.NewParams(x.Params); it.Next(); {
		p := it.Param()
		if a, err := wire.ParseReConfigResponse(p); err == nil {
			r.answer.Store(a.RespSeq)
		} else if q, err := wire.ParseOutgoingReset(p); err == nil {
			a := wire.AppendReConfigResponse(nil, wire.ReConfigResponse{RespSeq: q.ReqSeq, Result: wire.ReConfigPerformed})
			r.packet(r.theirs.Load(), wire.AppendReConfig(nil, wire.ReConfig{Params: a}))
		}
	}
}

// open makes the association.
func (r *rawPeer) open(t *testing.T, ctx context.Context) {
	t.Helper()
	init := wire.Init{Tag: r.tag, RWND: 1 << 20, OutStreams: 65535, InStreams: 65535, TSN: r.tsn}
	init.Params = wire.AppendForwardTSNSupported(nil)
	init.Params = wire.AppendSupportedExtensions(init.Params, wire.ChunkReConfig, wire.ChunkForwardTSN)
	r.acked.Store(r.tsn - 1)
	for {
		if err := r.packet(0, wire.AppendInit(nil, init)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-r.up:
			return
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("no association: ", ctx.Err())
		case <-r.ended:
			t.Fatal("the program has ended the connection")
		}
	}
}

// errEnded tells that the program has ended the connection.
var errEnded = errors.New("the program has ended the connection")

// send sends a fragment when no more than 256 are unacknowledged, or after 20 ms.
func (r *rawPeer) send(d wire.Data) error {
	for wait := 0; wait < 20 && int32(r.tsn-r.acked.Load()) > 256; wait++ {
		time.Sleep(time.Millisecond)
	}
	select {
	case <-r.ended:
		return errEnded
	default:
	}
	d.TSN = r.tsn
	r.tsn++
	return r.packet(r.theirs.Load(), wire.AppendData(nil, d))
}

// The payload protocol identifiers of RFC 8831, Section 8.
const (
	ppidDCEP   = 50
	ppidBinary = 53
)

// dcepOpen is a DATA_CHANNEL_OPEN message (RFC 8832, Section 5.1).
func dcepOpen(protocol string) []byte {
	b := append([]byte{3, 0, 0, 0, 0, 0, 0, 0}, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(protocol)))
	return append(b, protocol...)
}

func (r *rawPeer) openChannel(stream, ssn uint16, protocol string) error {
	return r.send(wire.Data{SID: stream, SSN: ssn, PPID: ppidDCEP, Begin: true, End: true, Payload: dcepOpen(protocol)})
}

// resetStream asks for the reset of our outgoing stream, and waits for the answer for at most 200 ms a time.
func (r *rawPeer) resetStream(stream uint16) error {
	p := wire.AppendOutgoingReset(nil, wire.OutgoingReset{ReqSeq: r.reset, RespSeq: r.reset - 1, LastTSN: r.tsn - 1}, []uint16{stream})
	request := r.reset
	r.reset++
	for range 20 {
		if err := r.packet(r.theirs.Load(), wire.AppendReConfig(nil, wire.ReConfig{Params: p})); err != nil {
			return err
		}
		for range 2000 {
			if r.answer.Load() == request {
				return nil
			}
			select {
			case <-r.ended:
				return errEnded
			case <-time.After(100 * time.Microsecond):
			}
		}
	}
	return errors.New("no answer to a reset")
}

// attacks are what a peer inside DTLS does to the program. Each ends when it has done its worst, or with errEnded.
var attacks = map[string]func(r *rawPeer) error{
	"65535 channels": func(r *rawPeer) error {
		for s := range uint16(65535) {
			if err := r.openChannel(s, 0, "echo"); err != nil {
				return err
			}
		}
		return nil
	},
	"65535 streams without a channel": func(r *rawPeer) error {
		for s := range uint16(65535) {
			if err := r.send(wire.Data{SID: s, PPID: ppidBinary, Begin: true, End: true, Payload: make([]byte, 1)}); err != nil {
				return err
			}
		}
		return nil
	},
	"65535 messages without end": func(r *rawPeer) error {
		for s := range uint16(65535) {
			if err := r.send(wire.Data{SID: s, PPID: ppidBinary, Begin: true, Payload: make([]byte, 1)}); err != nil {
				return err
			}
		}
		return nil
	},
	"a message of 16 MiB": func(r *rawPeer) error {
		r.openChannel(0, 0, "echo")
		end := time.Now().Add(5 * time.Second)
		for i := 0; i < 16<<10 && time.Now().Before(end); i++ {
			err := r.send(wire.Data{SSN: 1, PPID: ppidBinary, Begin: i == 0, End: i == 16<<10-1, Payload: make([]byte, 1<<10)})
			if err != nil {
				return err
			}
		}
		return nil
	},
	"channels that it never reads": func(r *rawPeer) error {
		for s := range uint16(maxChannels) {
			if err := r.openChannel(s, 0, "source?size=65536"); err != nil {
				return err
			}
		}
		select {
		case <-time.After(5 * time.Second):
			return nil
		case <-r.ended:
			return errEnded
		}
	},
	"resets in a loop": func(r *rawPeer) error {
		rounds := 0
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); rounds++ {
			if err := r.openChannel(0, 0, "sink"); err != nil {
				return fmt.Errorf("after %d resets: %w", rounds, err)
			}
			if err := r.resetStream(0); err != nil {
				return fmt.Errorf("after %d resets: %w", rounds, err)
			}
		}
		return fmt.Errorf("%d resets done", rounds)
	},
	"INITs": func(r *rawPeer) error {
		for range 30_000 {
			init := wire.Init{Tag: rand.Uint32() | 1, RWND: 1 << 20, OutStreams: 65535, InStreams: 65535, TSN: rand.Uint32()}
			if err := r.packet(0, wire.AppendInit(nil, init)); err != nil {
				return err
			}
		}
		return nil
	},
	"COOKIE ECHOs": func(r *rawPeer) error {
		for i := range 30_000 {
			cookie := append([]byte(nil), r.cookie...)
			if i%2 == 1 && len(cookie) > 0 {
				cookie[rand.IntN(len(cookie))] ^= 1
			}
			if err := r.packet(r.theirs.Load(), wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: cookie})); err != nil {
				return err
			}
		}
		return nil
	},
	"junk": func(r *rawPeer) error {
		for i := range 30_000 {
			b := make([]byte, rand.IntN(1200))
			for i := range b {
				b[i] = byte(rand.Uint32())
			}
			var err error
			if i%2 == 0 {
				err = r.packet(r.theirs.Load(), b) // a right header, tag and checksum
			} else if len(b) > 0 {
				_, err = r.conn.Write(b)
			}
			if err != nil {
				return err
			}
		}
		return nil
	},
}

// TestHostilePeers attacks the program from inside DTLS, while another peer does its echoes.
func TestHostilePeers(t *testing.T) {
	if !weftBelow() {
		t.Skip("pion/sctp is below, whose bounds are its own")
	}
	for name, attack := range attacks {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			p := startProgram(t)
			stop := innocent(t, ctx, p)
			runtime.GC()
			before := heap()
			r := dialRaw(t, ctx, p)
			r.open(t, ctx)
			done := make(chan error, 1)
			go func() { done <- attack(r) }()
			var most uint64
			var err error
			for over := false; !over; {
				select {
				case err = <-done:
					over = true
				case <-time.After(200 * time.Millisecond):
				case <-ctx.Done():
					r.agent.Close()
					t.Fatal("the attack has not ended: ", ctx.Err())
				}
				runtime.GC()
				most = max(most, heap())
			}
			echoes := stop()
			t.Logf("ended with %v; at most %.1f MiB of heap more; %d echoes of the other peer meanwhile",
				err, (float64(most)-float64(before))/(1<<20), echoes)
			if most > before+hostileHeap {
				t.Errorf("%d bytes of heap, %d before: want at most %d more", most, before, hostileHeap)
			}
			r.conn.Close()
			p.wantNoPeers(t, 5*time.Second)
		})
	}
}

// heap returns the bytes of objects on the heap.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
