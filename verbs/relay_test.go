package verbs

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/relaytest"
	"github.com/weftstack/weft/sctp/relay"
)

// far is a device of a process behind a gateway.
type far struct {
	*node
	process *relaytest.Node
}

func newFar(t *testing.T, w *relaytest.World, site, p uint16, cfg Config, set func(*relay.NodeConfig)) *far {
	t.Helper()
	n := w.Node(site, p, set)
	cfg.Relay = n.Node
	return &far{node: nodeOn(t, nil, cfg), process: n}
}

// connectFar connects a queue pair of a to one of b.
func connectFar(t *testing.T, a, b *far, ca, cb QPConfig) (qa, qb *QP) {
	t.Helper()
	ctx := testContext(t)
	if b.l == nil {
		l, err := b.dev.Listen()
		if err != nil {
			t.Fatal(err)
		}
		b.l = l
	}
	qa, qb = a.qp(ca), b.qp(cb)
	meet(t, qb, func() (*ConnRequest, error) {
		r, err := b.l.Accept(ctx)
		if err == nil && r.RemoteProcess != a.process.Address() {
			t.Errorf("request of %v, want %v", r.RemoteProcess, a.process.Address())
		}
		return r, err
	}, func(p ConnParams) (ConnInfo, error) {
		return a.dev.ConnectRelay(ctx, b.process.Address(), qa, p)
	})
	return qa, qb
}

// inSites runs a test in virtual time with sites of gateways.
func inSites(t *testing.T, sites, gateways int, f func(t *testing.T, w *relaytest.World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := relaytest.New(t, 1, sites, gateways)
		defer w.Close()
		time.Sleep(time.Second) // the legs are set up
		f(t, w)
	})
}

func TestRelayWriteReadSend(t *testing.T) {
	for _, sites := range []int{2, 3} {
		t.Run(fmt.Sprintf("sites=%d", sites), func(t *testing.T) {
			inSites(t, sites, 1, func(t *testing.T, w *relaytest.World) {
				a, b := newFar(t, w, 1, 1, Config{}, nil), newFar(t, w, uint16(sites), 1, Config{}, nil)
				defer a.process.Close()
				defer b.process.Close()
				qa, qb := connectFar(t, a, b, QPConfig{}, QPConfig{})
				writeReadSend(t, a.node, b.node, qa, qb, 4<<20)
				qb, qa = connectFar(t, b, a, QPConfig{}, QPConfig{}) // the other way, on the same association
				writeReadSend(t, b.node, a.node, qb, qa, 1<<20)
				for _, n := range []*far{a, b} {
					if st := n.dev.RelayStats(); st.Associations != 1 || st.Malformed+st.Unknown+st.Violations > 0 {
						t.Errorf("%+v", st)
					}
					for _, f := range n.process.Stats().Receivers {
						if f.Frames != f.Messages {
							t.Errorf("%d frames for %d messages: segments do not fit frames", f.Frames, f.Messages)
						}
					}
				}
			})
		})
	}
}

func TestRelayRestart(t *testing.T) {
	inSites(t, 2, 1, func(t *testing.T, w *relaytest.World) {
		a, b := newFar(t, w, 1, 1, Config{}, nil), newFar(t, w, 2, 1, Config{}, nil)
		defer a.process.Close()
		qa, _ := connectFar(t, a, b, QPConfig{}, QPConfig{})
		b.process.Close()
		time.Sleep(time.Second)
		b = newFar(t, w, 2, 1, Config{}, nil)
		defer b.process.Close()
		began := time.Now()
		wantDone(t, qa, relay.ErrRestarted) // though it sends nothing
		if d := time.Since(began); d > 7*time.Second {
			t.Errorf("noticed after %v", d)
		}
		qa, qb := connectFar(t, a, b, QPConfig{}, QPConfig{})
		writeReadSend(t, a.node, b.node, qa, qb, 1<<20)
		var down int
		for {
			e, ok := a.dev.PollEvent()
			if !ok {
				break
			}
			t.Log(e)
			if e.Type == EventPeerDown && e.Process == b.process.Address() && errors.Is(e.Err, relay.ErrRestarted) {
				down++
			}
		}
		if down != 1 {
			t.Errorf("%d events of the end of the association, want 1", down)
		}
	})
}
