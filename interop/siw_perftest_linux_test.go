package interop

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// siwPerftest has the programs of perftest measure together with ours.
func siwPerftest(t *testing.T, g *siw) {
	for _, mode := range []string{"send", "send_lat", "write", "read", "read_lat"} {
		siwMeasure(t, g, mode, true)
		siwMeasure(t, g, mode, false)
	}
	// The server of this one sends first, for which our server needs the
	// peer-to-peer mode (RFC 5044, Section 7.1.2; RFC 6581, Section 5).
	siwMeasure(t, g, "write_lat", true)
}

// siwMeasure measures once.
func siwMeasure(t *testing.T, g *siw, mode string, weAreClient bool) {
	flags := []string{"-R", "-n", "20", "-s", "4096"}
	ours := append([]string{"perf"}, strings.Split(strings.Replace(mode, "_lat", " -lat", 1), " ")...)
	ours = append(ours, flags...)
	theirs := mode
	if !strings.HasSuffix(mode, "_lat") {
		theirs += "_bw"
	}
	theirs = "ib_" + theirs + " -d siw0 -x 0 -F " + strings.Join(flags, " ")
	if weAreClient {
		g.row(t, mode+"/we are the client", func(t *testing.T) {
			inside, outside := g.port(t)
			server := g.start(t, fmt.Sprintf("%s -p %d", theirs, inside))
			g.awaitListener(t, inside)
			host, port, _ := net.SplitHostPort(outside)
			out, errs, status := weft(t, append(ours, "-p", port, host)...)
			said, theirStatus := server.wait()
			if status != 0 || theirStatus != "0" {
				t.Fatalf("status %d: %s\nserver: status %s: %.3000s", status, errs, theirStatus, said)
			}
			wantMeasured(t, mode, true, out, said)
		})
		return
	}
	g.row(t, mode+"/we are the server", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(within(t), siwPatience)
		defer cancel()
		port := testenv.FreePort(t)
		server := commandIn(ctx, tool(t, "weft"), append(ours, "-p", fmt.Sprint(port))...)
		var out lockedBuffer
		var errs bytes.Buffer
		server.Stdout, server.Stderr = &out, &errs
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		awaitText(t, &out, "Waiting for client")
		said, status := g.start(t, fmt.Sprintf("%s -p %d %s", theirs, port, siwHost)).wait()
		err := server.Wait()
		if err != nil || status != "0" {
			t.Fatalf("our server: %v, %s\nclient: status %s: %.3000s", err, errs.String(), status, said)
		}
		wantMeasured(t, mode, false, out.String(), said)
	})
}

// measured is a line of results: size, iterations, and numbers.
var measured = regexp.MustCompile(`(?m)^ ?4096 +20 +([0-9.]+)(?:[ \t]+[0-9.]+){2,}\s*$`)

// wantMeasured checks what both sides printed: a result each, but for the
// server of read_lat, which has none.
func wantMeasured(t *testing.T, mode string, weAreClient bool, ours, theirs string) {
	t.Helper()
	for i, said := range []string{ours, theirs} {
		want := 1
		if mode == "read_lat" && (i == 0) != weAreClient {
			want = 0
		}
		if n := len(measured.FindAllString(said, -1)); n != want {
			t.Errorf("%s: %d results, want %d:\n%s", []string{"we", "they"}[i], n, want, said)
		}
	}
}
