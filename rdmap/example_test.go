package rdmap_test

import (
	"fmt"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddptest"
	"github.com/weftstack/weft/rdmap"
)

// printer prints what becomes of a stream.
type printer string

func (p printer) Sent(c rdmap.Completion)         { fmt.Println(p, "sent:", c.ID, c.Status) }
func (p printer) Received(c rdmap.Completion)     { fmt.Println(p, "received:", c.Len, "bytes") }
func (p printer) Changed(st rdmap.State, _ error) {}
func (p printer) Drained()                        {}
func (p printer) Idle()                           {}

// Two streams in memory: a Send arrives after the write before it, whatever
// the lower layer does to their order.
func Example() {
	pipe := ddptest.NewPipe(1, 1426)
	open := func(name string, end *ddptest.End) (*rdmap.Stream, *ddp.Table, *ddp.Domain) {
		table, domain := ddp.NewTable(), &ddp.Domain{}
		s, err := rdmap.NewStream(rdmap.Config{Table: table, Domain: domain, SendDepth: 4, RecvDepth: 4,
			SendSGEs: 1, RecvSGEs: 1, MaxInline: 16, IRD: 1, ORD: 1, Observer: printer(name)})
		if err != nil {
			panic(err)
		}
		end.Attach(s)
		s.Bind(end)
		s.Start(1)
		return s, table, domain
	}
	a, _, _ := open("a", pipe.A)
	b, table, domain := open("b", pipe.B)

	mem := make([]byte, 10000)
	region, err := table.Add(mem, 0, ddp.RemoteWrite, domain, nil)
	if err != nil {
		panic(err)
	}
	if err := b.ReserveRecv(1); err != nil {
		panic(err)
	}
	b.NextRecv().SGL = append(b.NextRecv().SGL, ddp.Mem{B: make([]byte, 16)})
	b.PostRecv()
	b.CommitRecv()

	if err := a.Reserve(2); err != nil {
		panic(err)
	}
	op := a.NextOp()
	op.ID, op.Kind, op.STag, op.Flags = 1, rdmap.OpWrite, region.STag(), rdmap.FlagSignaled
	op.SGL = append(op.SGL, ddp.Mem{B: make([]byte, 10000)})
	op = a.NextOp()
	op.ID, op.Kind = 2, rdmap.OpSend
	op.Inline = append(op.Inline, "written"...)
	a.Commit()
	pipe.Run()
	// Unordered output:
	// b received: 7 bytes
	// a sent: 1 success
}
