// Package golden reads files of golden vectors for tests: bytes of a wire
// format that were written by hand from the figures of a specification.
//
// Lines that start with # and empty lines are remarks. A line "kind name"
// starts a vector. Lines that start with a tab hold its bytes in hex, usually
// one line per row of the figure, with a remark behind a bar:
//
//	chunk SHUTDOWN
//		07 00 00 08 | type 7, flags 0, length 8
//		00 00 00 2a | cumulative TSN ack 42
package golden

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Vector is one entry of a file.
type Vector struct {
	Kind, Name string
	Bytes      []byte
}

// Read returns the vectors of a file in their order. It ends the test if the
// file is malformed, names a vector twice, or holds none.
func Read(t testing.TB, file string) []Vector {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := parse(string(text))
	if err != nil {
		t.Fatalf("%s:%v", file, err)
	}
	return all
}

func parse(text string) ([]Vector, error) {
	var all []Vector
	seen := make(map[string]bool)
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !strings.HasPrefix(line, "\t") {
			kind, name, ok := strings.Cut(line, " ")
			if !ok || seen[line] {
				return nil, fmt.Errorf("%d: want a new \"kind name\", have %q", n, line)
			}
			seen[line] = true
			all = append(all, Vector{Kind: kind, Name: name})
			continue
		}
		row, _, _ := strings.Cut(line, "|")
		b, err := hex.DecodeString(strings.Join(strings.Fields(row), ""))
		if err != nil || len(all) == 0 {
			return nil, fmt.Errorf("%d: want hex bytes of a vector, have %q", n, line)
		}
		v := &all[len(all)-1]
		v.Bytes = append(v.Bytes, b...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%d: no vector", n)
	}
	return all, nil
}
