package interop

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// TestCaptureDecodes has an independent decoder read everything that a job of
// ours sends: no packet may be malformed and every CRC32c must be right.
func TestCaptureDecodes(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		testenv.Lacking(t, "tshark not found: install Debian's tshark")
	}
	capture := filepath.Join(t.TempDir(), "job.pcap")
	farm(t, []string{"-n", "3", "-pcap", capture}, []string{"-tasks", "200"})
	fields := func(checksum string, args ...string) []string {
		args = append([]string{"-r", capture, "-d", "udp.port==1024-65535,sctp", "-o", "sctp.checksum:" + checksum}, args...)
		out, err := exec.Command(tshark, args...).Output()
		if err != nil {
			t.Fatalf("tshark %q: %v", args, err)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	// What stays on the host may go without a checksum, once both ends have said
	// so (RFC 9653): never the packets of an INIT or a COOKIE ECHO.
	packets := fields("crc-32c", "-T", "fields", "-e", "sctp.checksum.status", "-e", "sctp.checksum", "-e", "sctp.chunk_type")
	if len(packets) < 200 {
		t.Fatalf("%d packets captured of a job of 200 tasks", len(packets))
	}
	good := 0
	for i, p := range packets {
		f := strings.Split(p, "\t")
		if len(f) != 3 {
			t.Fatalf("packet %d: %q", i+1, p)
		}
		types := strings.Split(f[2], ",")
		switch {
		case f[0] == "1":
			good++
		case f[1] != "0x00000000" || slices.Contains(types, "1") || slices.Contains(types, "10"):
			t.Errorf("packet %d, chunks %s: checksum %s, status %q, want 1 (good)", i+1, f[2], f[1], f[0])
		}
	}
	if good < 4 { // INIT and COOKIE ECHO of one association, and their answers
		t.Errorf("%d of %d packets have a checksum", good, len(packets))
	}
	t.Logf("%d of %d packets have a checksum", good, len(packets))
	if bad := fields("none", "-Y", "_ws.malformed || _ws.expert.severity == error || udp.checksum.status == 0"); bad[0] != "" {
		t.Errorf("%d packets that the decoder objects to, first:\n%s", len(bad), bad[0])
	}
	for _, filter := range []string{"sctp.chunk_type == 1", "sctp.chunk_type == 10", "sctp.chunk_type == 64", "sctp.chunk_type == 3", "sctp.chunk_type == 14"} {
		if found := fields("none", "-Y", filter); found[0] == "" {
			t.Errorf("no packet with %s", filter)
		}
	}
}
