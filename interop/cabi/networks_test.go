package cabi

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// TestConservationOverNetworks runs the program that does everything at once, and closes its books, over emulated
// networks: one that loses, reorders, doubles and corrupts packets; two of which one goes down in the middle; and
// sites one of whose gateways is killed.
func TestConservationOverNetworks(t *testing.T) {
	testenv.Networks(t)
	weft := filepath.Join(prefix(t), "bin", "weft")
	exe := compile(t, filepath.Join("testdata", "conserve.c"), "-pthread")
	for _, tt := range []struct {
		name  string
		flags string
	}{
		{"loss", "-hosts 3 -delay 100us -jitter 100us -loss 2% -reorder 3% -dup 1% -corrupt 1%"},
		{"path down", "-hosts 2 -nets 2 -delay 100us -loss 1% -at=700ms_cut_net_0"},
		{"gateway killed", "-sites 2 -hosts 1 -gateways 2 -wan 1gbit_1ms_loss_1% -at=700ms_kill_site_1_gateway_1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := []string{"net", "-timeout", "50s", "-x", "WEFT_TRANSPORT=sctp"}
			for _, f := range strings.Fields(tt.flags) {
				args = append(args, strings.ReplaceAll(f, "_", " "))
			}
			out, errs, status := command(t, runTime, nil, weft, append(args, exe, "16")...)
			if status != 0 || !strings.Contains("\n"+out, "\nok\n") {
				t.Errorf("status %d, want 0 and ok\n%s%s", status, out, errs)
			}
		})
	}
}
