package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

const root = "../../../.."

func TestOutputsAreCurrent(t *testing.T) {
	for _, o := range outputs {
		want, err := o.text(root)
		if err != nil {
			t.Errorf("%s: %v", o.path, err)
			continue
		}
		got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(o.path)))
		if err != nil {
			t.Error(err)
			continue
		}
		// A work tree of Windows may have other line ends.
		if !bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), want) {
			t.Errorf("%s is not what the facts say: go run ./mpi/internal/standard/generate", o.path)
		}
	}
}
