package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// open makes a device on a loopback transport.
func open() (*verbs.Device, *sctp.Transport) {
	tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	if err != nil {
		log.Fatal(err)
	}
	dev, err := verbs.Open(verbs.Config{Transport: tr})
	if err != nil {
		log.Fatal(err)
	}
	return dev, tr
}

// serve accepts one connection and gives away a region.
func serve(ctx context.Context, dev *verbs.Device, l *verbs.Listener, mem []byte) (*verbs.QP, error) {
	pd := dev.AllocPD()
	mr, err := pd.Register(mem, verbs.RemoteRead|verbs.RemoteWrite)
	if err != nil {
		return nil, err
	}
	cq, err := dev.NewCQ(64)
	if err != nil {
		return nil, err
	}
	qp, err := pd.NewQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
	if err != nil {
		return nil, err
	}
	req, err := l.Accept(ctx)
	if err != nil {
		return nil, err
	}
	// The STag travels in the private data of the answer.
	return qp, req.Accept(qp, verbs.ConnParams{PrivateData: fmt.Appendf(nil, "%d", mr.STag())})
}

// One side writes into the memory of the other and reads it back. The other
// side's program takes no part in it.
func Example() {
	ctx := context.Background()
	server, tr := open()
	defer tr.Close()
	client, tr2 := open()
	defer tr2.Close()

	l, err := server.Listen()
	if err != nil {
		log.Fatal(err)
	}
	mem := make([]byte, 64)
	go serve(ctx, server, l, mem)

	pd := client.AllocPD()
	cq, err := client.NewCQ(64)
	if err != nil {
		log.Fatal(err)
	}
	qp, err := pd.NewQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
	if err != nil {
		log.Fatal(err)
	}
	info, err := client.Connect(ctx, server.Addr(), qp, verbs.ConnParams{})
	if err != nil {
		log.Fatal(err)
	}
	remote := verbs.RemoteBuf{Len: 64}
	fmt.Sscan(string(info.PrivateData), &remote.STag)

	local, err := pd.Register(make([]byte, 64), verbs.LocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	err = qp.PostSend(
		verbs.SendWR{ID: 1, Op: verbs.OpWrite, Inline: []byte("hello, memory"), Remote: remote.At(8)},
		verbs.SendWR{ID: 2, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{local.Slice(0, 64)}, Remote: remote},
	)
	if err != nil {
		log.Fatal(err)
	}
	var wc [1]verbs.WC
	if _, err := cq.Wait(ctx, wc[:]); err != nil {
		log.Fatal(err)
	}
	fmt.Println(wc[0].ID, wc[0].Status, wc[0].Len)
	fmt.Printf("%q\n", local.Bytes()[8:21])
	// Output:
	// 2 success 64
	// "hello, memory"
}

// A write beyond the end of a region ends the connection, with the reason.
func ExampleTerminateError() {
	ctx := context.Background()
	server, tr := open()
	defer tr.Close()
	client, tr2 := open()
	defer tr2.Close()
	l, err := server.Listen()
	if err != nil {
		log.Fatal(err)
	}
	go serve(ctx, server, l, make([]byte, 64))

	pd := client.AllocPD()
	cq, err := client.NewCQ(64)
	if err != nil {
		log.Fatal(err)
	}
	qp, err := pd.NewQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
	if err != nil {
		log.Fatal(err)
	}
	info, err := client.Connect(ctx, server.Addr(), qp, verbs.ConnParams{})
	if err != nil {
		log.Fatal(err)
	}
	remote := verbs.RemoteBuf{Len: 64}
	fmt.Sscan(string(info.PrivateData), &remote.STag)
	if err := qp.PostSend(verbs.SendWR{Op: verbs.OpWrite, Inline: []byte("xy"), Remote: remote.At(63)}); err != nil {
		log.Fatal(err)
	}
	<-qp.Done()
	var te *verbs.TerminateError
	fmt.Println(errors.As(qp.Err(), &te), te.ByPeer)
	fmt.Println(te.Header.Fault)
	// Output:
	// true true
	// ddp: DDP tagged buffer: base or bounds violation (1/1/01)
}
