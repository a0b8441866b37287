package ddpmpa_test

import (
	"fmt"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpmpa"
)

func ExampleFramer() {
	framer := ddpmpa.NewFramer(true, true)
	stream := framer.Append(nil, []byte("a segment"), nil)
	ulpdu, n, err := ddpmpa.NewDeframer(true, true).Next(stream)
	fmt.Println(string(ulpdu), n, err)
	// Output: a segment 20 <nil>
}

func ExampleAppendFrame() {
	b := ddpmpa.AppendFrame(nil, &ddpmpa.Frame{CRC: true, Revision: ddpmpa.Revision2,
		IsEnhanced: true, Enhanced: ddp.Enhanced{IRD: 16, ORD: 4}, Private: []byte("hi")})
	f, n, ok, err := ddpmpa.ParseFrame(b, false)
	fmt.Println(f.Revision, f.Enhanced.IRD, f.Enhanced.ORD, string(f.Private), n, ok, err)
	// Output: 2 16 4 hi 26 true <nil>
}
