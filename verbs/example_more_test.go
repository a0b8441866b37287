package verbs_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weftstack/weft/verbs"
)

// endpoint is a queue pair with a completion queue of its own.
type endpoint struct {
	pd *verbs.PD
	cq *verbs.CQ
	qp *verbs.QP
}

func newEndpoint(dev *verbs.Device, srq func(*verbs.PD) *verbs.SRQ) *endpoint {
	e := &endpoint{pd: dev.AllocPD()}
	var err error
	if e.cq, err = dev.NewCQ(64); err != nil {
		log.Fatal(err)
	}
	cfg := verbs.QPConfig{SendCQ: e.cq, RecvCQ: e.cq}
	if srq != nil {
		cfg.SRQ = srq(e.pd)
	}
	if e.qp, err = e.pd.NewQP(cfg); err != nil {
		log.Fatal(err)
	}
	return e
}

// wait returns the next completion.
func (e *endpoint) wait(ctx context.Context) verbs.WC {
	var wc [1]verbs.WC
	if _, err := e.cq.Wait(ctx, wc[:]); err != nil {
		log.Fatal(err)
	}
	if err := wc[0].Err(); err != nil {
		log.Fatal(err)
	}
	return wc[0]
}

// join connects a to b.
func join(ctx context.Context, client, server *verbs.Device, a, b *endpoint) {
	l, err := server.Listen()
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		req, err := l.Accept(ctx)
		if err == nil {
			err = req.Accept(b.qp, verbs.ConnParams{})
		}
		done <- err
	}()
	if _, err := client.Connect(ctx, server.Addr(), a.qp, verbs.ConnParams{}); err != nil {
		log.Fatal(err)
	}
	if err := <-done; err != nil {
		log.Fatal(err)
	}
}

// A window gives one peer the right to a part of a region, for as long as it
// takes: the peer writes, and takes its own right away with the message that says
// so.
func ExampleMW() {
	ctx := context.Background()
	server, tr := open()
	defer tr.Close()
	client, tr2 := open()
	defer tr2.Close()
	a, b := newEndpoint(client, nil), newEndpoint(server, nil)
	join(ctx, client, server, a, b)

	mem := []byte("................")
	mr, err := b.pd.Register(mem, verbs.LocalWrite|verbs.MWBind)
	if err != nil {
		log.Fatal(err)
	}
	mw, err := b.pd.AllocMW()
	if err != nil {
		log.Fatal(err)
	}
	err = b.qp.PostSend(verbs.SendWR{Op: verbs.OpBindMW, Flags: verbs.Signaled,
		Bind: &verbs.Bind{MW: mw, MR: mr, Off: 4, Len: 8, Access: verbs.RemoteWrite}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.wait(ctx).Op, mw.Bound())
	if err := b.qp.PostRecv(verbs.RecvWR{}); err != nil {
		log.Fatal(err)
	}

	// A program would send the STag in a message.
	err = a.qp.PostSend(
		verbs.SendWR{Op: verbs.OpWrite, Inline: []byte("windowed"), Remote: verbs.RemoteBuf{STag: mw.STag()}},
		verbs.SendWR{Op: verbs.OpSendInvalidate, Invalidate: mw.STag()})
	if err != nil {
		log.Fatal(err)
	}
	wc := b.wait(ctx)
	fmt.Println(wc.Flags&verbs.WithInvalidate != 0, mw.Bound(), string(mem))
	// Output:
	// bind true
	// true false ....windowed....
}

// A shared receive queue serves any number of queue pairs, and says when it runs
// low.
func ExampleSRQ() {
	ctx := context.Background()
	server, tr := open()
	defer tr.Close()
	client, tr2 := open()
	defer tr2.Close()

	var srq *verbs.SRQ
	b := newEndpoint(server, func(pd *verbs.PD) *verbs.SRQ {
		var err error
		if srq, err = pd.NewSRQ(verbs.SRQConfig{Depth: 16, Limit: 2}); err != nil {
			log.Fatal(err)
		}
		return srq
	})
	mr, err := b.pd.Register(make([]byte, 64), verbs.LocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	for i := range 2 {
		if err := srq.PostRecv(verbs.RecvWR{ID: uint64(i), SGL: []verbs.SGE{mr.Slice(32*i, 32)}}); err != nil {
			log.Fatal(err)
		}
	}
	a := newEndpoint(client, nil)
	join(ctx, client, server, a, b)
	if err := a.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, Inline: []byte("hello")}); err != nil {
		log.Fatal(err)
	}
	wc := b.wait(ctx)
	fmt.Printf("%s, %d left\n", mr.Bytes()[:wc.Len], srq.Query().Posted)
	for {
		e, err := server.GetEvent(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if e.SRQ == srq {
			fmt.Println(e.Type)
			break
		}
	}
	// Output:
	// hello, 1 left
	// SRQ limit reached
}
