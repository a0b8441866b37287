package golden

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "v.txt")
	text := "# remark\n\nchunk A\n\t01 0203 | one\n\tff\n\nparam B/c\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []Vector{{"chunk", "A", []byte{1, 2, 3, 255}}, {Kind: "param", Name: "B/c"}}
	if got := Read(t, file); !reflect.DeepEqual(got, want) {
		t.Errorf("Read = %v, want %v", got, want)
	}
}

func TestMalformedFiles(t *testing.T) {
	for name, text := range map[string]string{
		"empty":         "",
		"remarks only":  "# a\n",
		"no name":       "chunk\n\t01\n",
		"bytes first":   "\t01\n",
		"not hex":       "chunk A\n\t0x\n",
		"half a byte":   "chunk A\n\t012\n",
		"vector twice":  "chunk A\n\t01\nchunk A\n\t02\n",
		"bar forgotten": "chunk A\n\t01 type\n",
	} {
		if v, err := parse(text); err == nil {
			t.Errorf("%s: read as %v", name, v)
		}
	}
}
