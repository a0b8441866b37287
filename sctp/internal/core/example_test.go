package core_test

import (
	"fmt"
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// Two associations without a network: the caller carries packets and time.
func Example() {
	client := netip.MustParseAddrPort("192.0.2.1:9899")
	server := netip.MustParseAddrPort("192.0.2.2:9899")
	now := clock.Time(1)

	l := core.NewListener(nil, core.ListenerParams{Port: 80, Local: []netip.AddrPort{server}, Seed: [32]byte{1}})
	a, err := core.NewClient(nil, now, core.ClientParams{LocalPort: 5000, PeerPort: 80, Tag: 7,
		Local: []netip.AddrPort{client}, Peer: []netip.AddrPort{server}, Seed: [32]byte{2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := a.Send(now, &tx.Message{SID: 1, Body: []byte("hello")}); err != nil {
		fmt.Println(err)
		return
	}

	var z *core.Assoc
	for z == nil || !z.Readable() {
		out, _, ok := a.PollTransmit(now, nil, 1)
		if !ok {
			break
		}
		p := &core.Packet{Tuple: core.Tuple{Local: server, Remote: client}, Data: out}
		var reply []byte
		if z == nil {
			r := l.HandlePacket(now, p, nil)
			z, reply = r.New, r.Reply
		} else {
			z.HandlePacket(now, p)
		}
		if z != nil {
			z.EndBatch(now)
			reply, _, _ = z.PollTransmit(now, nil, 1)
		}
		if len(reply) > 0 {
			a.HandlePacket(now, &core.Packet{Tuple: core.Tuple{Local: client, Remote: server}, Data: reply})
			a.EndBatch(now)
		}
	}
	buf := make([]byte, 100)
	var info reasm.RecvInfo
	n, _ := z.Read(buf, &info)
	fmt.Printf("%s on stream %d, states %v and %v\n", buf[:n], info.SID, a.State(), z.State())
	// Output: hello on stream 1, states ESTABLISHED and ESTABLISHED
}
