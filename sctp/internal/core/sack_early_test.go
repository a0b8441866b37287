package core

import (
	"testing"

	"github.com/weftstack/weft/sctp/wire"
)

// Where SACKs are sent early, the answer to a reset of all TSNs (RFC 6525,
// Section 5.2.4) still goes before the first SACK for the new ones.
func TestEarlySackDoesNotOvertakeAnswers(t *testing.T) {
	for _, name := range []string{"alone", "behind data"} {
		p := connected(t, 211, &Config{NoInterleaving: true})
		p.a.send(0, 500)
		p.drive()
		dup := wire.AppendData(nil, wire.Data{TSN: uint32(p.z.assoc.rx.tsns.CumTSN()), Begin: true, End: true, Payload: []byte("x")})
		packet := [][]byte{wire.AppendReConfig(nil, wire.ReConfig{Params: wire.AppendTSNReset(nil, uint32(p.a.assoc.tsn))})}
		if name == "behind data" {
			packet = append([][]byte{dup}, packet...)
		}
		p.z.deliver(p.z.packet(p.z.assoc.Tag(), dup)) // the path loses packets
		p.z.outbox()
		p.z.deliver(p.z.packet(p.z.assoc.Tag(), packet...))
		if out := p.z.outbox(); len(out) == 0 || chunkTypes(out[0])[0] != wire.ChunkReConfig {
			t.Errorf("%s: %d packets, the first of which is not the answer", name, len(out))
		}
	}
}
