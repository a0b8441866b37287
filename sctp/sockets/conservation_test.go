package sockets_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/sockets"
)

// Everything at once, in both styles: loss, duplicates and disorder; associations that come and
// go, by shutdown, by ABORT and by Close while they are written to; readers that pause;
// messages beyond the receive buffer; associations that are peeled off. What was written
// before a shutdown is read once, whole and in order on its stream; before another end some of
// the last may be missing, never in between. Each association is told to begin once and to end
// once. When all sockets are closed nothing is left: the bubble would not end.
func TestConservation(t *testing.T) {
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("WEFT_CONSERVATION"), 10, 64); err == nil {
		seed = s // of a failure
	}
	t.Logf("seed %d: WEFT_CONSERVATION repeats its choices", seed)
	rounds := 24
	if sockets.RaceEnabled {
		rounds = 6
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, seed, sctptest.Link{Delay: time.Millisecond, Loss: 0.01, Duplicate: 0.01, Reorder: 0.01})
		p.server.ReadBuffer, p.client.WriteBuffer = 128<<10, 256<<10
		p.server.Events = sockets.SCTP_EVENT_ASSOCIATION | sockets.SCTP_EVENT_SHUTDOWN
		v := &conservation{t: t, seed: seed, got: map[uint32]*[conserveStreams]uint32{}}
		l, err := p.server.Listen("sctp", addr(t, "10.0.0.1/10.0.1.1:1001"))
		if err != nil {
			t.Fatal(err)
		}
		p.server.ListenPacket = nil // two transports on one host of the network need two ports
		p2 := newPair(t, seed+1, sctptest.Link{Delay: time.Millisecond, Loss: 0.01, Duplicate: 0.01, Reorder: 0.01})
		p2.server.ReadBuffer, p2.server.Events = 128<<10, p.server.Events
		hub, err := p2.server.ListenOneToMany("sctp", addr(t, "10.0.0.1/10.0.1.1:1002"))
		if err != nil {
			t.Fatal(err)
		}
		var servers, clients sync.WaitGroup
		servers.Go(func() { v.acceptAll(l, &servers) })
		servers.Go(func() { v.read(hub, rand.New(rand.NewPCG(seed, 1)), &servers) })
		for worker := range 4 {
			clients.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(2+worker)))
				for i := range rounds {
					q, to := p, "10.0.0.1/10.0.1.1:1001"
					if i%2 == 1 {
						q, to = p2, "10.0.0.1/10.0.1.1:1002"
					}
					v.client(q, to, uint32(worker*rounds+i), r)
				}
			})
		}
		clients.Wait()
		time.Sleep(3 * time.Hour) // all associations have ended, also those whose ABORT was lost
		if ids := hub.AssocIDs(); len(ids) != 0 {
			t.Errorf("seed %d: associations %v are left", seed, ids)
		}
		l.Close()
		hub.Close()
		servers.Wait()
		v.check(4 * rounds)
	})
}

const conserveStreams = 3

// conservation counts what was sent and received.
type conservation struct {
	t    *testing.T
	seed uint64

	mu       sync.Mutex
	sent     map[uint32][conserveStreams]uint32  // messages of clients, of those that shut down
	got      map[uint32]*[conserveStreams]uint32 // messages received, in order
	up, down int
}

// client opens an association, writes and ends it.
func (v *conservation) client(p *pair, to string, id uint32, r *rand.Rand) {
	// A network in memory gives each transport a socket of its own: a new port each time.
	c, err := p.client.Dial("sctp", addr(v.t, "10.0.0.2/10.0.1.2:0"), addr(v.t, to))
	if err != nil {
		v.t.Errorf("seed %d: client %d: %v", v.seed, id, err)
		return
	}
	defer c.Close()
	var sent [conserveStreams]uint32
	write := func(most int) bool {
		n := 16 + r.IntN(most)
		stream := r.IntN(conserveStreams)
		b := make([]byte, n)
		binary.BigEndian.PutUint32(b, id)
		binary.BigEndian.PutUint32(b[4:], sent[stream])
		binary.BigEndian.PutUint32(b[8:], uint32(n))
		for i := 16; i < n; i++ {
			b[i] = byte(i*7 + int(id))
		}
		_, err := c.SCTPWrite(b, &sockets.SndRcvInfo{Stream: uint16(stream), PPID: id})
		if err == nil {
			sent[stream]++
		}
		return err == nil
	}
	for range 20 + r.IntN(20) {
		most := 3000
		if r.IntN(10) == 0 {
			most = 200_000 // beyond the receive buffer
		}
		if !write(most) {
			v.t.Errorf("seed %d: client %d could not write", v.seed, id)
		}
		if r.IntN(4) == 0 {
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		}
	}
	switch r.IntN(4) {
	case 0:
		c.SCTPWrite([]byte("enough"), &sockets.SndRcvInfo{Flags: sockets.SCTP_ABORT})
		return
	case 1: // closed while it is written to
		done, pause := make(chan struct{}), time.Duration(r.IntN(50))*time.Millisecond
		go func() {
			defer close(done)
			for write(3000) {
			}
		}()
		time.Sleep(pause)
		c.Close()
		<-done
	case 2: // waits until the peer has everything
		c.SCTPWrite(nil, &sockets.SndRcvInfo{Flags: sockets.SCTP_EOF})
		if _, err := c.Read(make([]byte, 10)); err != io.EOF {
			v.t.Errorf("seed %d: client %d ends with %v", v.seed, id, err)
		}
	default:
		c.Close()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.sent == nil {
		v.sent = map[uint32][conserveStreams]uint32{}
	}
	v.sent[id] = sent
}

func (v *conservation) acceptAll(l *sockets.SCTPListener, wg *sync.WaitGroup) {
	r := rand.New(rand.NewPCG(v.seed, 0))
	for {
		c, err := l.AcceptSCTP()
		if err != nil {
			return
		}
		reader := rand.New(rand.NewPCG(r.Uint64(), 0))
		wg.Go(func() {
			defer c.Close()
			v.read(c, reader, wg)
		})
	}
}

// read reads all messages and notifications of a socket.
func (v *conservation) read(c *sockets.SCTPConn, r *rand.Rand, wg *sync.WaitGroup) {
	buf := make([]byte, 50_000)
	parts := map[int32][]byte{}
	for {
		var info sockets.SndRcvInfo
		n, flags, err := c.ReadMsg(buf, &info)
		if err != nil {
			if err != io.EOF && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.ETIMEDOUT) && // the ABORT was lost
				!errors.Is(err, syscall.EBADF) {
				v.t.Errorf("seed %d: read: %v", v.seed, err)
			}
			return
		}
		if r.IntN(20) == 0 {
			time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
		}
		if flags&sockets.MSG_NOTIFICATION != 0 {
			v.note(buf[:n])
			continue
		}
		parts[info.AssocID] = append(parts[info.AssocID], buf[:n]...)
		if flags&sockets.MSG_EOR == 0 {
			continue
		}
		v.message(parts[info.AssocID], &info)
		parts[info.AssocID] = parts[info.AssocID][:0]
		if c.RemoteAddr() == nil && r.IntN(100) == 0 {
			peeled, err := c.PeelOff(int(info.AssocID))
			if err != nil {
				continue // it has just ended
			}
			delete(parts, info.AssocID)
			reader := rand.New(rand.NewPCG(r.Uint64(), 0))
			wg.Go(func() {
				defer peeled.Close()
				v.read(peeled, reader, wg)
			})
		}
	}
}

func (v *conservation) note(b []byte) {
	n, err := sockets.ParseNotification(b)
	if err != nil {
		v.t.Errorf("seed %d: %v", v.seed, err)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if change, ok := n.(*sockets.AssocChange); ok {
		if change.State == sockets.SCTP_COMM_UP {
			v.up++
		} else {
			v.down++
		}
	}
}

func (v *conservation) message(b []byte, info *sockets.SndRcvInfo) {
	id, seq, n := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	err := func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if int(n) != len(b) || info.PPID != id || int(info.Stream) >= conserveStreams {
			return fmt.Errorf("%d bytes of %d, %+v", len(b), n, info)
		}
		for i := 16; i < len(b); i++ {
			if b[i] != byte(i*7+int(id)) {
				return fmt.Errorf("byte %d of %d is wrong", i, len(b))
			}
		}
		if v.got[id] == nil {
			v.got[id] = new([conserveStreams]uint32)
		}
		next := &v.got[id][info.Stream]
		if seq != *next {
			return fmt.Errorf("message %d, want %d", seq, *next)
		}
		*next++
		return nil
	}()
	if err != nil {
		v.t.Errorf("seed %d: client %d, stream %d: %v", v.seed, id, info.Stream, err)
	}
}

// check compares what was received with what was sent.
func (v *conservation) check(associations int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	total := 0
	for id, sent := range v.sent {
		got := v.got[id]
		if got == nil || *got != sent {
			v.t.Errorf("seed %d: client %d sent %v messages, %v came", v.seed, id, sent, got)
			continue
		}
		for _, n := range got {
			total += int(n)
		}
	}
	if v.up != associations || v.down != associations {
		v.t.Errorf("seed %d: %d beginnings and %d ends of %d associations", v.seed, v.up, v.down, associations)
	}
	v.t.Logf("%d associations, %d of them shut down, with %d messages", associations, len(v.sent), total)
}
