package main

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"
)

// replacement returns what the module with SCTP was replaced by in this program, nil if it was not.
func replacement() *debug.Module {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		panic("no module information in the test")
	}
	for _, m := range info.Deps {
		if m.Path == "github.com/pion/sctp" {
			return m.Replace
		}
	}
	panic("github.com/pion/sctp is not part of the program")
}

// weftBelow tells whether weft is in place of pion/sctp.
func weftBelow() bool { return replacement() != nil }

// TestModules checks that what go.mod says about SCTP is what this program is made of.
func TestModules(t *testing.T) {
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(sctpModule())
	says := regexp.MustCompile(`(?m)^(replace\s+)?\s*github\.com/pion/sctp\s.*=>\s*(\S+)`).FindStringSubmatch(string(b))
	switch r := replacement(); {
	case says == nil && r != nil, says != nil && (r == nil || r.Path != says[2]):
		t.Errorf("github.com/pion/sctp replaced by %+v; go.mod says %q", r, says)
	}
}
