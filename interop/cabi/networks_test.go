package cabi

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// TestConservationOverNetworks runs conserve.c, which calls all kinds of communication at once and checks at the
// end that nothing was lost or is left, over three emulated networks. The first loses, reorders, duplicates and
// corrupts packets. In the second one of two paths is cut. In the third a gateway between two sites is killed.
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
