package ddpsctp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// asker is the active side of a session that nothing comes of.
type asker struct{ ddp.Sink }

func (asker) Answered(Answer)   {}
func (asker) Lost(error)        {}
func (asker) Skip(uint64) error { return nil }

// A peer that opens an association and asks for nothing, or for what it does not get,
// has it for a limited time; one that waits for a decision, or was accepted, goes on.
func TestAssociationsWithoutSessionsEnd(t *testing.T) {
	for _, tt := range []struct {
		name  string
		asks  bool
		treat func(*Request) // nil: it goes undecided
		lives bool
	}{
		{"says nothing", false, nil, false},
		{"waits", true, nil, true},
		{"refused", true, func(r *Request) { r.Refuse() }, false},
		{"rejected", true, func(r *Request) { r.Reject(nil) }, false},
		{"accepted", true, func(r *Request) {
			if err := r.Accept(asker{}, func(*Session) error { return nil }, Enhanced{}, nil); err != nil {
				panic(err)
			}
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := sctptest.NewNetwork(1)
				defer n.Close()
				n.SetDefault(sctptest.Link{Delay: time.Millisecond})
				var ends [2]*Endpoint
				for i, ip := range []string{"10.0.0.1", "10.0.0.2"} {
					pc, err := n.NewHost(ip).ListenPacket(ip + ":9899")
					if err != nil {
						t.Fatal(err)
					}
					tr, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
					if err != nil {
						t.Fatal(err)
					}
					defer tr.Close()
					ends[i], err = Listen(tr, 7000, Config{OnRequest: func(r *Request) {
						if tt.treat != nil {
							tt.treat(r)
						}
					}})
					if err != nil {
						t.Fatal(err)
					}
				}
				a, err := ends[0].Dial(t.Context(), ends[1].Addr())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if tt.asks {
					if _, err := a.Initiate(asker{}, func(*Session) error { return nil }, nil, nil); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(sctp.DefaultProbationTimeout - 2*time.Second)
				if err := a.Err(); err != nil {
					t.Error("ended early:", err)
				}
				time.Sleep(sctp.DefaultProbationTimeout)
				if err := a.Err(); (err == nil) != tt.lives {
					t.Errorf("after %v: %v", 2*sctp.DefaultProbationTimeout, err)
				}
			})
		})
	}
}
