package interop

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// sshHosts are servers of OpenSSH with keys of their own, and the command that
// reaches them.
type sshHosts struct {
	t   testing.TB
	dir string
	rsh string // for weft run -rsh
}

// sshd is where Debian has it; it wants to be started by that name.
const sshd = "/usr/sbin/sshd"

// newSSHHosts makes the keys.
func newSSHHosts(t testing.TB) *sshHosts {
	t.Helper()
	if _, err := os.Stat(sshd); err != nil {
		testenv.Lacking(t, "%s not found: install Debian's openssh-server", sshd)
	}
	for _, name := range []string{"ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(name); err != nil {
			testenv.Lacking(t, "%s not found: install Debian's openssh-client", name)
		}
	}
	h := &sshHosts{t: t, dir: t.TempDir()}
	for _, key := range []string{"host", "user"} {
		if said, err := command(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(h.dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, said)
		}
	}
	if os.Geteuid() == 0 { // where it gives up its rights
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// serve starts a server at addr, in a network namespace if ns is not empty.
func (h *sshHosts) serve(ns, addr string) {
	h.t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		h.t.Fatal(err)
	}
	config := filepath.Join(h.dir, "sshd-"+host)
	text := fmt.Sprintf(`ListenAddress %s
HostKey %[2]s/host
AuthorizedKeysFile %[2]s/user.pub
StrictModes no
UsePAM no
PidFile none
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
`, addr, h.dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	words := []string{sshd, "-D", "-e", "-f", config}
	if ns != "" {
		words = append([]string{"ip", "netns", "exec", ns}, words...)
	}
	cmd := command(h.t, words[0], words[1:]...)
	var said lockedBuffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	awaitText(h.t, &said, "Server listening on "+host)
	h.rsh = fmt.Sprintf("ssh -F none -p %s -i %s/user -o BatchMode=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR -o UserKnownHostsFile=%[2]s/known",
		port, h.dir)
}

// run runs `weft run` in a namespace.
func (h *sshHosts) run(ns string, args ...string) (stdout, stderr string, status int) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(within(h.t), commandTime)
	defer cancel()
	words := append([]string{tool(h.t, "weft"), "run", "-rsh", h.rsh}, args...)
	if ns != "" {
		words = append([]string{"ip", "netns", "exec", ns}, words...)
	}
	cmd := commandIn(ctx, words[0], words[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the status tells
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// TestSSHOnLoopback starts ranks by a real ssh, on this host.
func TestSSHOnLoopback(t *testing.T) {
	bounded(t)
	h := newSSHHosts(t)
	h.serve("", fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)))
	check := mainPackage(t, "mpicheck", "../mpi/internal/mpicheck")
	t.Run("job", func(t *testing.T) {
		out, errs, status := h.run("", "-hosts", "127.0.0.1:2,localhost:1", "-addr", "127.0.0.1", "-l", check)
		if status != 0 || !strings.Contains(out, "3 ranks over hybrid: all verified") {
			t.Errorf("status %d\n%s%s", status, out, errs)
		}
	})
	t.Run("environment and directory", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "it's a dir")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		out, errs, status := h.run("", "-hosts", "127.0.0.1", "-wdir", dir, "-x", "X=y 'z' $HOME", "/bin/sh", "-c", `echo "<$X> in $(pwd)"`)
		if want := "<y 'z' $HOME> in " + dir; status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, want %q\n%s%s", status, want, out, errs)
		}
	})
	t.Run("a rank fails", func(t *testing.T) {
		_, errs, status := h.run("", "-hosts", "127.0.0.1:2", "/bin/sh", "-c", "exit $((3 + 4 * PMI_ID))")
		if status != 3 && status != 7 || !strings.Contains(errs, fmt.Sprintf("rank %d", (status-3)/4)) {
			t.Errorf("status %d\n%s", status, errs)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		_, errs, status := h.run("", "-rsh", strings.Replace(h.rsh, "-p ", fmt.Sprintf("-p %d -o Port=", testenv.FreePort(t)), 1), "-hosts", "127.0.0.1", check)
		if status != 255 || !strings.Contains(errs, "refused") {
			t.Errorf("status %d\n%s", status, errs)
		}
	})
	t.Run("wrong key", func(t *testing.T) {
		_, errs, status := h.run("", "-rsh", strings.Replace(h.rsh, "/user ", "/host ", 1), "-hosts", "127.0.0.1", check)
		if status != 255 || !strings.Contains(errs, "Permission denied") {
			t.Errorf("status %d\n%s", status, errs)
		}
	})
}

// TestSSHBetweenHosts starts ranks on two hosts, network namespaces with a server
// each.
func TestSSHBetweenHosts(t *testing.T) {
	bounded(t)
	m := newMultinet(t, false)
	h := newSSHHosts(t)
	var hosts []string
	for end, ns := range []string{m.ours, m.peer} {
		addr := linkAddr(0, end).String()
		h.serve(ns, addr+":2222")
		hosts = append(hosts, addr+":2")
	}
	check := mainPackage(t, "mpicheck", "../mpi/internal/mpicheck")
	for _, transport := range []string{"hybrid", "sctp", "tcp"} {
		t.Run("transport="+transport, func(t *testing.T) {
			out, errs, status := h.run(m.ours, "-hosts", strings.Join(hosts, ","), "-transport", transport, check)
			if status != 0 || !strings.Contains(out, "4 ranks over "+transport+": all verified") {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
		})
	}
}
