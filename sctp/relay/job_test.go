package relay_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/frame"
)

// derivedKey is a key for the jobs below 1000.
func derivedKey(job uint32) []byte {
	if job >= 1000 {
		return nil
	}
	return fmt.Appendf(nil, "the derived key of job %d", job)
}

// Gateways relay for jobs whose keys they compute, through a site without processes too, and forget a job that has gone.
func TestJobKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3, 1, true, func(c *relay.GatewayConfig) {
			c.Jobs, c.JobKey = nil, derivedKey
			c.Classes = []relay.Class{{Name: "bulk", Jobs: []relay.JobRange{{First: 500, Last: 600}}}}
		})
		defer w.Close()
		w.connected()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, id := range []uint32{5, 501} {
			of := func(c *relay.NodeConfig) { c.Job, c.Key = id, derivedKey(id) }
			a, b := w.Node(1, 1, of), w.Node(3, 1, of)
			s, err := a.Sender(b.Address(), 1)
			wantNil(t, err)
			wantNil(t, s.Send(ctx, bytes.Repeat([]byte("x"), 10_000), relay.SendOptions{}))
			wantNil(t, s.Flush(ctx))
			for id, g := range w.Up {
				if got := g.Stats().Jobs; got != 1 {
					t.Errorf("site %d knows %d jobs, want 1", id[0], got)
				}
			}
			for _, c := range w.Up[[2]uint16{1, 1}].Stats().Classes {
				if (c.Name == "bulk") != (id == 501) && c.Bytes > 0 && id == 5 {
					t.Errorf("job %d has sent %d bytes in class %s", id, c.Bytes, c.Name)
				}
				if c.Name == "bulk" && id == 501 && c.Bytes < 10_000 {
					t.Errorf("class bulk has sent %d bytes, want at least 10000", c.Bytes)
				}
			}
			a.Close()
			b.Close()
			time.Sleep(15 * time.Second) // until flows are forgotten
			for id, g := range w.Up {
				if s := g.Stats(); s.Jobs != 0 || len(s.Flows) != 0 || s.Held != 0 {
					t.Errorf("site %d keeps %d jobs, %d flows, %d bytes", id[0], s.Jobs, len(s.Flows), s.Held)
				}
			}
		}
	})
}

// Who does not have the key of a job is refused, and the gateway keeps nothing of it.
func TestJobKeyRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		job  uint32
		key  []byte
		want string
	}{
		{"wrong key", 5, []byte("not the key of job 5"), "authentication failed"},
		{"key of another job", 5, derivedKey(6), "authentication failed"},
		{"unknown job", 1000, derivedKey(5), "unknown job 1000"},
		{"no job", 0, derivedKey(0), "unknown job 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, 2, 1, false, func(c *relay.GatewayConfig) { c.Jobs, c.JobKey = nil, derivedKey })
				defer w.Close()
				x := w.intrude(t, "10.1.0.99", lanAddr(1, 1), relay.DefaultGatewayLAN)
				defer x.tr.Close()
				g := nodeGreeting(1, 9)
				g.Job = tt.job
				x.prove(g, tt.key)
				x.wantEnd(tt.want)
				time.Sleep(time.Second)
				if s := w.Up[[2]uint16{1, 1}].Stats(); s.PeersRefused != 1 || s.Jobs != 0 {
					t.Errorf("%d peers refused, %d jobs; want 1, 0", s.PeersRefused, s.Jobs)
				}
			})
		})
	}
}

// A job that was added has the key that it was added with, and stays; after its removal it has the computed one.
func TestAddedJobBesideJobKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, func(c *relay.GatewayConfig) { c.JobKey = derivedKey })
		defer w.Close()
		w.connected()
		g := w.Up[[2]uint16{1, 1}]
		w.Node(1, 1, nil).Close()
		time.Sleep(15 * time.Second)
		if n := g.Stats().Jobs; n != 1 {
			t.Errorf("%d jobs, want 1", n)
		}
		g.RemoveJob(testJob)
		if n, err := w.TryNode(1, 2, nil); err == nil || !strings.Contains(err.Error(), "authentication failed") && !strings.Contains(err.Error(), "deadline") {
			t.Errorf("with the key of a job that was removed: %v", err)
			n.Close()
		}
		w.Node(1, 3, func(c *relay.NodeConfig) { c.Key = derivedKey(testJob) }).Close()
	})
}

// A snapshot has each of many flows once, and frames pass while it is taken.
func TestStatsOfManyFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const flows = 1500
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		a, b := w.Node(1, 1, nil), w.Node(2, 1, nil)
		defer a.Close()
		defer b.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i := range uint16(flows) {
			s, err := a.Sender(b.Address(), i)
			wantNil(t, err)
			wantNil(t, s.Send(ctx, []byte("x"), relay.SendOptions{}))
		}
		time.Sleep(time.Second)
		seen := make(map[string]bool)
		for _, f := range w.Up[[2]uint16{2, 1}].Stats().Flows {
			seen[fmt.Sprint(f.From, f.To, f.Stream)] = true
		}
		if n := len(w.Up[[2]uint16{2, 1}].Stats().Flows); n != 2*flows || len(seen) != n {
			t.Errorf("%d flows, %d different ones, want %d", n, len(seen), 2*flows)
		}
	})
}

// A gateway cannot make another one keep more jobs than flows, whatever numbers it says.
func TestJobsAreBoundedByFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 10
		w := newWorld(t, 1, 3, 1, true, func(c *relay.GatewayConfig) {
			c.Jobs, c.JobKey, c.MaxFlows = nil, derivedKey, most
		})
		defer w.Close()
		w.connected()
		w.Kill(1, 1)
		time.Sleep(2 * time.Second) // until its leg is dead
		x := w.intrude(t, "192.0.1.99", wanAddr(2, 1), relay.DefaultGatewayWAN)
		defer x.tr.Close()
		x.prove(frame.Greeting{Role: frame.RoleGateway, From: relay.Address{Site: 1, Node: 1}, Incarnation: 1 << 30, Site: 2}, siteKey(1, 2))
		x.wantUp()
		for i := range uint32(1000) {
			x.send(frame.Append(nil, &frame.Frame{Header: frame.Header{
				Type: frame.Data, Flags: frame.First | frame.Last | frame.Fresh, Hops: frame.MaxHops, Job: i + 1, Incarnation: 1,
				From: address(1, uint16(i+1)), To: address(3, 1),
			}, PPID: 1, Payload: []byte("x")}))
			if i%100 == 99 {
				time.Sleep(20 * time.Millisecond)
			}
		}
		s := w.Up[[2]uint16{2, 1}].Stats()
		if s.TooManyFlows == 0 || s.Jobs == 0 || s.Jobs > most || len(s.Flows) > most {
			t.Errorf("%d jobs, %d flows, %d refused; want at most %d", s.Jobs, len(s.Flows), s.TooManyFlows, most)
		}
		time.Sleep(15 * time.Second)
		if s := w.Up[[2]uint16{2, 1}].Stats(); s.Jobs != 0 {
			t.Errorf("%d jobs are kept", s.Jobs)
		}
	})
}
