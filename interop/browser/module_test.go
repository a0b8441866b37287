package main

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"
)

// weftBelow tells whether go.mod puts weft in place of pion/sctp.
func weftBelow() bool {
	b, err := os.ReadFile("go.mod")
	if err != nil {
		panic(err) // the tests run in the folder of the module
	}
	return regexp.MustCompile(`(?m)^(replace\s+)?\s*github\.com/pion/sctp\s.*=>\s*\.\./pion\s*$`).Match(b)
}

// TestModules checks that what go.mod says about SCTP is what this program is made of.
func TestModules(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("no module information in the test")
	}
	found := false
	for _, m := range info.Deps {
		if m.Path != "github.com/pion/sctp" {
			continue
		}
		found = true
		if replaced := m.Replace != nil && m.Replace.Path == "../pion"; replaced != weftBelow() {
			t.Errorf("module %s: replaced by %v; go.mod says that weft is below: %v", m.Path, m.Replace, weftBelow())
		}
	}
	if !found {
		t.Error("github.com/pion/sctp is not part of the program")
	}
	t.Log(sctpModule())
}
