package interop

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// TestCaptureDecodes has an independent decoder read everything that a job of
// ours sends: no packet may be malformed and every CRC32c must be right.
func TestCaptureDecodes(t *testing.T) {
	bounded(t)
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		testenv.Lacking(t, "tshark not found: install Debian's tshark")
	}
	capture := filepath.Join(t.TempDir(), "job.pcap")
	farm(t, []string{"-n", "3", "-pcap", capture}, []string{"-tasks", "200"})
	fields := func(args ...string) []string {
		args = append([]string{"-r", capture, "-d", "udp.port==1024-65535,sctp", "-o", "sctp.checksum:crc-32c"}, args...)
		out, err := command(t, tshark, args...).Output()
		if err != nil {
			t.Fatalf("tshark %q: %v", args, err)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	status := fields("-T", "fields", "-e", "sctp.checksum.status")
	if len(status) < 200 {
		t.Fatalf("%d packets captured of a job of 200 tasks", len(status))
	}
	for i, s := range status {
		if s != "1" {
			t.Errorf("packet %d: checksum status %q, want 1 (good)", i+1, s)
		}
	}
	if bad := fields("-Y", "_ws.malformed || _ws.expert.severity == error || udp.checksum.status == 0"); bad[0] != "" {
		t.Errorf("%d packets that the decoder objects to, first:\n%s", len(bad), bad[0])
	}
	for _, filter := range []string{"sctp.chunk_type == 1", "sctp.chunk_type == 10", "sctp.chunk_type == 64", "sctp.chunk_type == 3", "sctp.chunk_type == 14"} {
		if found := fields("-Y", filter); found[0] == "" {
			t.Errorf("no packet with %s", filter)
		}
	}
}
