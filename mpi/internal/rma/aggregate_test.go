package rma

import "testing"

// Puts that follow one another are one piece. There is room for AggregatePieces pieces and
// AggregateBytes bytes.
func TestPutListRoom(t *testing.T) {
	for _, tt := range []struct {
		name         string
		length, step int
		puts, pieces int
		longest      int
	}{
		{"adjacent, pieces bounded", 8, 8, 100 * AggregatePieces, AggregatePieces, 800},
		{"adjacent, bounded by an odd number", 8, 8, 12 * AggregatePieces, AggregatePieces, 99},
		{"adjacent", 8, 8, AggregateBytes / 8, 1, AggregateBytes},
		{"adjacent, odd", AggregateLimit - 1, AggregateLimit - 1, AggregateBytes / (AggregateLimit - 1), 1, AggregateBytes},
		{"apart", 8, 9, AggregatePieces, AggregatePieces, AggregateBytes},
		{"backwards", 8, -8, AggregatePieces, AggregatePieces, AggregateBytes},
		{"in one place", 8, 0, AggregatePieces, AggregatePieces, AggregateBytes},
		{"long", AggregateLimit, 2 * AggregateLimit, AggregateBytes / AggregateLimit, AggregateBytes / AggregateLimit, AggregateBytes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := new(putList)
			src := make([]byte, tt.length)
			puts := 0
			for src[0] = 1; p.add(src, 1<<20+puts*tt.step, tt.longest); src[0]++ {
				if puts++; puts > AggregateBytes {
					t.Fatal("there is always room")
				}
			}
			if puts != tt.puts || p.count != puts || p.used != tt.pieces || p.n != puts*tt.length {
				t.Errorf("%d puts, counted %d, in %d pieces of %d bytes; want %d in %d", puts, p.count, p.used, p.n, tt.puts, tt.pieces)
			}
			sum := 0
			for _, k := range p.pieces[:p.used] {
				sum += k.N
			}
			if sum != p.n || p.pieces[0].Off != 1<<20 || p.mem[p.n-tt.length] != byte(puts) {
				t.Errorf("pieces of %d bytes, not %d, the first %v, the last begins with %d", sum, p.n, p.pieces[0], p.mem[p.n-tt.length])
			}
		})
	}
}
