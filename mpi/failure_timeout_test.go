package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// How patient a job is follows from whether it can do without a rank.
func TestDefaultSilence(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts []Option
		want time.Duration
	}{
		{"by default", nil, PatientSilence},
		{"fault tolerant", []Option{WithFaultTolerance()}, DefaultSilence},
		{"chosen", []Option{WithSilence(7 * time.Second)}, 7 * time.Second},
		{"chosen, fault tolerant", []Option{WithFaultTolerance(), WithSilence(7 * time.Second)}, 7 * time.Second},
		{"in RunLocal", []Option{ofProcess, WithFaultTolerance()}, LocalSilence},
	} {
		o, err := buildOptions(TransportSCTP, tt.opts)
		if err != nil || o.FailureTimeout != tt.want {
			t.Errorf("%s: %v, %v; want %v", tt.name, o.FailureTimeout, err, tt.want)
		}
	}
}

// said collects what ranks report.
type said struct {
	mu    sync.Mutex
	lines []string
	start time.Time
}

func (s *said) report(by, about int, state pmi.PeerState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%d: %d %s after %ds", by, about, state, int(time.Since(s.start).Seconds())))
}

// take returns the lines so far, in order, and drops them.
func (s *said) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.lines
	s.lines = nil
	slices.Sort(out)
	return out
}

// asInit makes RunLocal as patient as Init.
func asInit(o *options) error {
	o.Local, o.FailureTimeout = false, 0
	return nil
}

// TestPatience cuts two ranks off from each other for 20 s, while they are idle, send,
// and update memory, with the options of Init, in virtual time: nothing is lost. After 3 s
// each reports that the other does not answer, and then that it answers. A cut that lasts ends in
// a RankError after a minute.
func TestPatience(t *testing.T) {
	const away = 20 * time.Second
	for _, transport := range []string{TransportSCTP, TransportHybrid} {
		t.Run("transport="+transport, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := sctptest.NewNetwork(3)
				defer net.Close()
				net.SetDefault(sctptest.Link{Delay: time.Millisecond})
				var words said
				both := func(do func(a, b string)) { do("10.0.0.1", "10.0.0.2") }
				reports := func(o *options) error { o.Reported = words.report; return nil }
				err := RunLocal(t.Context(), 2, func(_ context.Context, w *World) error {
					ctx := t.Context() // that of RunLocal ends when the other one fails
					c := w.Comm()
					other := 1 - c.Rank()
					mem := make([]int64, 1)
					win, err := WinCreate(ctx, c, mem)
					if err != nil {
						return err
					}
					use := map[string]func() error{
						"idle": func() error { time.Sleep(away + 5*time.Second); return nil },
						"message": func() error {
							in := make([]byte, 1<<20)
							_, err := Sendrecv(ctx, c, make([]byte, 1<<20), other, 0, in, other, 0)
							return err
						},
						"window": func() error {
							return errors.Join(win.Fence(ctx), win.Put(ctx, []int64{int64(c.Rank() + 1)}, other, 0), win.Fence(ctx))
						},
					}
					for _, what := range []string{"idle", "message", "window"} {
						if c.Rank() == 0 {
							words.start = time.Now()
							both(net.Cut)
							time.AfterFunc(away, func() { both(net.Restore) })
						}
						if err := use[what](); err != nil {
							return fmt.Errorf("%s over a cut of %v: %w", what, away, err)
						}
						if err := Barrier(ctx, c); err != nil {
							return fmt.Errorf("barrier after %s: %w", what, err)
						}
						time.Sleep(5 * time.Second)
						if c.Rank() == 0 {
							got := words.take()
							t.Logf("%s: %q", what, got)
							if len(got) != 4 {
								t.Errorf("%s: said %q, want that each is silent, and answers", what, got)
							}
							for i, want := range []string{"0: 1 answered after 20s", "0: 1 silent after 3s", "1: 0 answered after 20s", "1: 0 silent after 3s"} {
								// A probe may have been on its way, or be due.
								later := want[:len(want)-2] + string(want[len(want)-2]+1) + "s"
								if i < len(got) && got[i] != want && got[i] != later {
									t.Errorf("%s: said %q, want %q", what, got[i], want)
								}
							}
						}
					}
					if mem[0] != int64(other+1) {
						return fmt.Errorf("memory holds %d, want %d", mem[0], other+1)
					}
					if err := Barrier(ctx, c); err != nil {
						return err
					}
					begun := time.Now()
					both(net.Cut)
					_, err = Recv(ctx, c, []int{0}, other, 9)
					if took := time.Since(begun); !errors.Is(err, ErrProcFailed) || took < PatientSilence-time.Second || took > PatientSilence*3/2+time.Second {
						t.Errorf("cut off for good: %v after %v, want ErrProcFailed after %v", err, took, PatientSilence)
					}
					return nil
				}, WithTransport(transport), WithSpin(0), asInit, reports, WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
					addr := fmt.Sprintf("10.0.0.%d", rank+1)
					pc, err := net.NewHost(addr).ListenPacket(addr + ":9899")
					return []sctp.PacketConn{pc}, err
				}))
				if err != nil && !errors.Is(err, ErrProcFailed) { // Finalize says it, too
					t.Error(err)
				}
			})
		})
	}
}
