package emulator

import (
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
)

func TestNetWrongUseExitsWithTwo(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-hosts", "0", "x"}, {"-hosts", "65", "x"}, {"-nets", "9", "x"}, {"-loss", "2", "x"}, {"-rate", "fast", "x"}, {"-mtu", "1", "x"},
		{"-at", "5s", "x"}, {"-at", "5s cut net 3", "x"}, {"-main", "2", "x"}, {"-on", "2", "x"}, {"-on", "0", "x", ":", "y"},
		{"-timeout", "-1s", "x"}, {"-x", "=", "x"}, {"--", ":"}, {"--", "x", ":", ":", "y"}, {"--", "a", ":", "b", ":", "c"},
	} {
		clitest.WantMisused(t, "weft net", append([]string{"net"}, args...)...)
	}
}

func TestSplitCommands(t *testing.T) {
	got, err := splitCommands([]string{"a", "1", ":", "b", ":", "c", "2", "3"})
	want := [][]string{{"a", "1"}, {"b"}, {"c", "2", "3"}}
	if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("commands %q, %v; want %q", got, err, want)
	}
}

func TestDestination(t *testing.T) {
	pkt := make([]byte, 20)
	pkt[0] = 0x45
	copy(pkt[16:], []byte{10, 77, 1, 3})
	if got := destination(1, pkt); got != 2 {
		t.Errorf("10.77.1.3 in network 1 is host %d, want 2", got)
	}
	if got := destination(0, pkt); got != -1 {
		t.Errorf("10.77.1.3 in network 0 is host %d, want none", got)
	}
	for _, bad := range [][]byte{nil, pkt[:19], append([]byte{0x60}, pkt[1:]...)} {
		if got := destination(1, bad); got != -1 {
			t.Errorf("%x is for host %d, want none", bad, got)
		}
	}
}

// Commands that outnumber the processors which the emulator leaves neither poll nor use
// more than one, unless told.
func TestNetFrugalEnv(t *testing.T) {
	for _, tt := range []struct {
		name  string
		n     int
		env   []string
		outer string
		want  string
	}{
		{"room for all", 3, nil, "", ""},
		{"one too many", 4, []string{"A=B"}, "", "WEFT_SPIN=0 GOMAXPROCS=1"},
		{"polling given by -x", 4, []string{"A=B", "WEFT_SPIN=1ms"}, "", "GOMAXPROCS=1"},
		{"processors given by -x", 4, []string{"GOMAXPROCS=2"}, "", "WEFT_SPIN=0"},
		{"polling given outside", 4, nil, "WEFT_SPIN", "GOMAXPROCS=1"},
		{"processors given outside", 4, nil, "GOMAXPROCS", "WEFT_SPIN=0"},
	} {
		o := options{env: tt.env}
		got := o.frugalEnv(tt.n, 4, func(name string) string {
			if name == tt.outer {
				return "given"
			}
			return ""
		})
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, s, tt.want)
		}
	}
}
