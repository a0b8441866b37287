package sctp

import "github.com/weftstack/weft/sctp/wire"

// TryMarshalUnmarshal parses msg as an SCTP packet, and returns 1 if its header and those of its chunks
// are whole and writing the chunks again gives as many bytes, otherwise 0. It is for fuzzing.
func TryMarshalUnmarshal(msg []byte) int {
	if _, err := wire.ParseHeader(msg); err != nil {
		return 0
	}
	body := msg[wire.HeaderLen:]
	var again []byte
	it := wire.NewChunks(body)
	for it.Next() {
		c := it.Chunk()
		again = wire.AppendChunk(again, c.Type, c.Flags, c.Value)
	}
	if it.Err() != nil || len(again) != (len(body)+3)/4*4 {
		return 0
	}
	return 1
}
