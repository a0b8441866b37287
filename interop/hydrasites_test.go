package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/internal/testenv"
)

// localSites makes sites a and b, of two ranks each, on this host, and starts their gateways. It returns the sites file, and the
// status address of a gateway.
func localSites(t *testing.T) (file, status string) {
	t.Helper()
	dir := t.TempDir()
	free := func(network string) string {
		if network == "tcp4" {
			l, err := net.Listen(network, "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			return l.Addr().String()
		}
		c, err := net.ListenPacket(network, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.LocalAddr().String()
	}
	text := "jobs key-file key\njob-class bulk weight 2\nleg a b key-file key\n"
	var addrs []string
	for i, name := range []string{"a", "b"} {
		addrs = append(addrs, free("tcp4"))
		text += fmt.Sprintf("site %s\nranks %d-%d\ngateway x lan %s wan %s status %s\n", name, 2*i, 2*i+1, free("udp4"), free("udp4"), addrs[i])
	}
	file = filepath.Join(dir, "sites")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := sites.WriteKey(filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		cmd := commandIn(within(t), tool(t, "weft"), "gateway", "-sites", file, "-site", name)
		var log bytes.Buffer
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if t.Failed() {
				t.Logf("gateway of site %s:\n%s", name, log.String())
			}
		})
	}
	for _, addr := range addrs {
		if _, errs, code := weft(t, "gateway", "status", "-wait", "20s", addr); code != 0 {
			t.Fatal(errs)
		}
	}
	return file, addrs[0]
}

// sentByClass returns how many bytes a gateway has sent to others, by class of jobs.
func sentByClass(t *testing.T, status string) map[string]uint64 {
	t.Helper()
	out, errs, code := weft(t, "gateway", "status", "-json", status)
	var s struct {
		Classes []struct {
			Name  string `json:"name"`
			Bytes uint64 `json:"bytes_sent"`
		} `json:"classes"`
	}
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil {
		t.Fatalf("status %d, %v: %s", code, err, errs)
	}
	sent := make(map[string]uint64)
	for _, c := range s.Classes {
		sent[c.Name] = c.Bytes
	}
	return sent
}

// TestHydraInSites runs an example under the launcher of MPICH, in two sites that an environment variable
// names, and in a class of jobs.
func TestHydraInSites(t *testing.T) {
	bounded(t)
	hydra, err := exec.LookPath("mpiexec.hydra")
	if err != nil {
		testenv.Lacking(t, "mpiexec.hydra not found: install Debian's mpich")
	}
	halo := mainPackage(t, "halo", "../mpi/examples/halo")
	file, status := localSites(t)
	run := func(class, program string, env ...string) (string, error) {
		ctx, cancel := context.WithTimeout(within(t), commandTime)
		defer cancel()
		cmd := commandIn(ctx, hydra, "-n", "4", program)
		cmd.Env = append(os.Environ(), sites.EnvFile+"="+file, sites.EnvClass+"="+class, "WEFT_ADDRS=127.0.0.1")
		cmd.Env = append(cmd.Env, env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	// Hydra now and then fails itself, and loses what was said, if all ranks end at once with an error.
	refused := func(class, program string, env ...string) (out string, err error) {
		for range 5 {
			if out, err = run(class, program, env...); !strings.Contains(out, "assert (!closed)") {
				break
			}
		}
		return out, err
	}
	for _, class := range []string{"", "bulk"} {
		before := sentByClass(t, status)
		out, err := run(class, halo)
		if err != nil || !strings.Contains(out, "mean temperature is 13.178147") {
			t.Errorf("class %q: %v\n%s", class, err, out)
		}
		after := sentByClass(t, status)
		name, other := "default", "bulk"
		if class != "" {
			name, other = other, name
		}
		if after[name] < before[name]+10_000 || after[other] != before[other] {
			t.Errorf("class %q: the gateway has sent %v before, and %v after", class, before, after)
		}
	}
	if out, err := refused("", os.Args[0], envProgram+"=spawn"); err == nil || !strings.Contains(out, "only weft run -sites spawns others") {
		t.Errorf("a program that spawns: %v\n%s", err, out)
	}
	if out, err := refused("slow", halo); err == nil || !strings.Contains(out, `there is no job-class "slow"`) {
		t.Errorf("a class that the file does not have: %v\n%s", err, out)
	}
}

// TestMPIProgramsInSites runs the MPI test program as jobs of weft run in two sites, on every transport.
func TestMPIProgramsInSites(t *testing.T) {
	bounded(t)
	check := mainPackage(t, "mpicheck", "../mpi/internal/mpicheck")
	file, status := localSites(t)
	for _, x := range [][2]string{{"hybrid", "piecewise"}, {"sctp", "chained"}, {"tcp", "lossy"}} {
		transport, mode := x[0], x[1]
		before := sentByClass(t, status)["default"]
		out, errs, code := weft(t, "run", "-n", "4", "-transport", transport, "-sites", file, "-mode", mode, check)
		if code != 0 || !strings.Contains(out, fmt.Sprintf("4 ranks over %s: all verified", transport)) {
			t.Errorf("%s, %s: status %d\n%s%s", transport, mode, code, out, errs)
		}
		if sent := sentByClass(t, status)["default"] - before; sent < 1<<20 {
			t.Errorf("%s, %s: the gateway has sent %d bytes", transport, mode, sent)
		}
	}
}
