package interop

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// siwRping has rping of rdmacm-utils and ours ping each other.
func siwRping(t *testing.T, g *siw) {
	for _, tt := range []struct {
		name string
		ours []string // flags of our end
		size int
	}{
		{"CRC", nil, 64},
		{"no CRC", []string{"--crc=false"}, 64},
		{"large", nil, 65535},
	} {
		common := []string{"-vV", "-C", "20", "-S", fmt.Sprint(tt.size)}
		g.row(t, "we are the client/"+tt.name, func(t *testing.T) {
			inside, outside := g.port(t)
			server := g.start(t, fmt.Sprintf("rping -s -v -a %s -p %d -S %d", siwGuest, inside, tt.size))
			g.awaitListener(t, inside)
			host, port, _ := net.SplitHostPort(outside)
			out, errs, status := weft(t, append(append([]string{"rping", "-c", "-a", host, "-p", port}, common...), tt.ours...)...)
			said, _ := server.wait()
			if status != 0 {
				t.Fatalf("status %d: %s\nserver: %.2000s", status, errs, said)
			}
			wantPings(t, out, "ping data: ", 20, tt.size)
			wantPings(t, said, "server ping data: ", 20, tt.size)
		})
		g.row(t, "we are the server/"+tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(within(t), siwPatience)
			defer cancel()
			port := testenv.FreePort(t)
			server := startRping(ctx, t, port, append([]string{"-v", "-S", fmt.Sprint(tt.size)}, tt.ours...)...)
			said, status := g.start(t, fmt.Sprintf("rping -c -a %s -p %d %s", siwHost, port, strings.Join(common, " "))).wait()
			server.end(t)
			wantPings(t, said, "ping data: ", 20, tt.size)
			wantPings(t, server.out.String(), "server ping data: ", 20, tt.size)
			if status != "0" {
				t.Errorf("status %s of the client: %.500s", status, said)
			}
		})
	}
}

// wantPings checks what an rping printed: every ping, with the letters that
// start one further each time.
func wantPings(t *testing.T, said, prefix string, count, size int) {
	t.Helper()
	n := 0
	for line := range strings.SplitSeq(said, "\n") {
		text, ok := strings.CutPrefix(line, prefix)
		if !ok {
			continue
		}
		want := []byte(fmt.Sprintf("rdma-ping-%d: ", n))
		for i := n; len(want) < size-1; i++ {
			want = append(want, 'A'+byte(i%('z'-'A'+1)))
		}
		if text != string(want) {
			t.Errorf("ping %d is %.80q (%d bytes), want %.80q (%d)", n, text, len(text), want, len(want))
		}
		n++
	}
	if n != count {
		t.Errorf("%d lines of %q, want %d:\n%.2000s", n, prefix, count, said)
	}
}
