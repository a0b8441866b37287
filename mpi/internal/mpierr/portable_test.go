package mpierr

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// TestPortable sends an error that wraps several others through JSON.
func TestPortable(t *testing.T) {
	if len(sentinels) > 64 {
		t.Fatalf("%d errors do not fit the bits of a word", len(sentinels))
	}
	here := fmt.Errorf("open: %w: %w: %s", ErrNotSame, fs.ErrExist, strings.Repeat("long ", maxPortableText))
	b, err := json.Marshal(MakePortable(here))
	if err != nil {
		t.Fatal(err)
	}
	var p Portable
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	there := p.Err()
	var remote *RemoteError
	if there.Error() != here.Error()[:maxPortableText] || !errors.As(there, &remote) {
		t.Errorf("error there is %q, a %T", there, there)
	}
	for _, x := range sentinels {
		if got, want := errors.Is(there, x.err), errors.Is(here, x.err); got != want {
			t.Errorf("wraps %q there: %t, want %t", x.err, got, want)
		}
	}
	if MakePortable(nil) != nil || (*Portable)(nil).Err() != nil {
		t.Error("no error is not nil")
	}
}
