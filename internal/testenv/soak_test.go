package testenv

import (
	"testing"
	"time"
)

func TestSoak(t *testing.T) {
	t.Setenv("WEFT_SOAK", "")
	if d := Soak(t, time.Second); d != time.Second {
		t.Errorf("by default %v, want 1s", d)
	}
	t.Setenv("WEFT_SOAK", "1m")
	if d := Soak(t, time.Second); d != time.Minute {
		t.Errorf("with WEFT_SOAK=1m %v, want 1m", d)
	}
}
