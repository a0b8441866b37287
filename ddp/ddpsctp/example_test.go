package ddpsctp_test

import (
	"fmt"

	"github.com/weftstack/weft/ddp/ddpsctp"
)

// An Initiate as it follows the DDP-SSN on the wire, with the read depths of RFC
// 6581.
func ExampleAppendControl() {
	b := ddpsctp.AppendControl(nil, &ddpsctp.Control{
		Function: ddpsctp.EnhancedInitiate,
		Enhanced: ddpsctp.Enhanced{IRD: 16, ORD: 4},
		Private:  []byte("hi"),
	})
	fmt.Printf("% x\n", b)
	c, ok := ddpsctp.ParseControl(b)
	fmt.Println(c.Function, c.Enhanced.IRD, c.Enhanced.ORD, string(c.Private), ok)
	// Output:
	// 00 05 00 10 00 04 68 69
	// Enhanced Initiate 16 4 hi true
}
