package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/weftstack/weft/internal/bench"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// rdmaPair is two devices of this process with queue pairs between them.
type rdmaPair struct {
	ta, tz *sctp.Transport
	a, z   *verbs.Device
	cq     *verbs.CQ // of all queue pairs of the reading side
	qps    []*verbs.QP
	local  *verbs.MR
	remote verbs.RemoteBuf
}

// openDevice opens a device on a transport of its own.
func openDevice(n int) (*sctp.Transport, *verbs.Device, error) {
	t, err := sctp.NewTransport(loopback())
	if err != nil {
		return nil, nil, err
	}
	d, err := verbs.Open(verbs.Config{Transport: t, Streams: uint16(min(65535, max(64, 4*n))), SCTP: &sctp.Config{MTU: 1500}})
	if err != nil {
		t.Close()
		return nil, nil, err
	}
	return t, d, nil
}

// scaleDepth is the size of the queues of one queue pair, each of which has one
// read under way at most when there are many.
const scaleDepth = scaleBurst

func newRDMAPair(ctx context.Context, n int) (p *rdmaPair, err error) {
	p = &rdmaPair{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.ta, p.a, err = openDevice(n); err != nil {
		return p, err
	}
	if p.tz, p.z, err = openDevice(n); err != nil {
		return p, err
	}
	l, err := p.z.Listen()
	if err != nil {
		return p, err
	}
	served := make(chan error, 1)
	zpd, apd := p.z.AllocPD(), p.a.AllocPD()
	target, err := zpd.Register(make([]byte, scaleSize), verbs.RemoteRead)
	if err != nil {
		return p, err
	}
	p.remote = target.Remote()
	zcq, err := p.z.NewCQ(1024)
	if err != nil {
		return p, err
	}
	config := func(cq *verbs.CQ) verbs.QPConfig {
		return verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: scaleDepth, RecvDepth: 1, IRD: scaleDepth, ORD: scaleDepth}
	}
	go func() {
		for range n {
			req, err := l.Accept(ctx)
			if err != nil {
				served <- err
				return
			}
			qp, err := zpd.NewQP(config(zcq))
			if err == nil {
				err = req.Accept(qp, verbs.ConnParams{})
			}
			if err != nil {
				served <- err
				return
			}
		}
		served <- nil
	}()
	if p.cq, err = p.a.NewCQ(4 * scaleBurst); err != nil {
		return p, err
	}
	if p.local, err = apd.Register(make([]byte, scaleSize), verbs.LocalWrite); err != nil {
		return p, err
	}
	for range n {
		qp, err := apd.NewQP(config(p.cq))
		if err != nil {
			return p, err
		}
		if _, err := p.a.Connect(ctx, p.z.Addr(), qp, verbs.ConnParams{}); err != nil {
			return p, err
		}
		p.qps = append(p.qps, qp)
	}
	return p, <-served
}

func (p *rdmaPair) close() {
	for _, t := range []*sctp.Transport{p.ta, p.tz} {
		if t != nil {
			t.Close()
		}
	}
}

// read posts a burst of reads, on so many queue pairs in turn, and waits for
// them.
func (p *rdmaPair) read(ctx context.Context, from int, wc []verbs.WC) error {
	sge := []verbs.SGE{p.local.Slice(0, scaleSize)}
	wr := []verbs.SendWR{{Op: verbs.OpRead, Flags: verbs.Signaled, SGL: sge, Remote: p.remote}}
	for i := range scaleBurst {
		if err := p.qps[(from+i)%len(p.qps)].PostSend(wr...); err != nil {
			return err
		}
	}
	for left := scaleBurst; left > 0; {
		n, err := p.cq.Wait(ctx, wc)
		if err != nil {
			return err
		}
		for i := range wc[:n] {
			if wc[i].Status != verbs.StatusSuccess {
				return wc[i].Err()
			}
		}
		left -= n
	}
	return nil
}

// scaleQPs measures up to limit queue pairs between two devices.
func scaleQPs(ctx context.Context, s *settings, limit int) (curve, error) {
	c := curve{name: "queue pairs"}
	wc := make([]verbs.WC, scaleBurst)
	for _, n := range tens(limit) {
		err := func() error {
			p, err := newRDMAPair(ctx, n)
			if err != nil {
				return err
			}
			defer p.close()
			reads := 0
			run := func(d time.Duration) error {
				for end := time.Now().Add(d); time.Now().Before(end); reads += scaleBurst {
					if err := p.read(ctx, reads, wc); err != nil {
						return err
					}
				}
				return nil
			}
			if err := run(s.time / 4); err != nil {
				return err
			}
			runtime.GC()
			before, from := bench.CPUSeconds(), reads
			if err := run(s.time); err != nil {
				return err
			}
			c.add(float64(n), (bench.CPUSeconds()-before)*1e9/float64(reads-from))
			return nil
		}()
		if err != nil {
			return c, fmt.Errorf("%d queue pairs: %w", n, err)
		}
		fmt.Fprintf(os.Stderr, "%d queue pairs: %.0f ns per RDMA Read\n", n, c.y[len(c.y)-1])
	}
	return c, nil
}
