package ddprelay_test

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/ddp/ddprelay"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/sctp/relay"
)

// connect opens a session to a process at another site, which package verbs does for its users: see
// verbs.Device.ConnectRelay.
func connect(ctx context.Context, node *relay.Node, init ddpsctp.Initiator, bind func(*ddpsctp.Session) error) error {
	e, err := ddprelay.Listen(node, 3, ddprelay.Config{
		OnRequest: func(r *ddpsctp.Request) { r.Reject([]byte("not today")) },
		OnNotify:  func(peer relay.Address, up bool, err error) { fmt.Println(peer, up, err) },
	})
	if err != nil {
		return err
	}
	a, err := e.Dial(ctx, relay.Address{Site: 2, Node: 1, Process: 1})
	if err != nil {
		return err
	}
	_, err = a.Initiate(init, bind, &ddpsctp.Enhanced{IRD: 16, ORD: 16}, nil)
	return err
}

func Example() {
	_ = connect
	// The service numbers that a node has, besides streams for other programs.
	fmt.Println(ddprelay.MaxService, ddprelay.FirstStream)
	// Output: 4095 32768
}
