package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Noisy is how many processors others may use before a run does not count.
const Noisy = 0.25

// Machine describes where an experiment runs: processors, system, Go version.
func Machine() string {
	return fmt.Sprintf("%d × %s, %s, %s", runtime.NumCPU(), processor(), kernel(), runtime.Version())
}

// processor returns the model of the processor where the system tells it.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func kernel() string {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return "Linux " + string(bytes.TrimSpace(data))
}

// Revision returns the git revision of the work tree, with a plus behind it if
// files were changed since, or "unknown".
func Revision() string {
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	rev := string(bytes.TrimSpace(out))
	if changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no", "--", ":/*.go",
		":/*.c").Output(); err == nil && len(changed) > 0 {
		rev += "+"
	}
	return rev
}

// Provenance returns one line that says where, when and of what the figures of a
// section are: machine, date, revision, and how many of the runs others disturbed.
func Provenance(runs, noisy int) string {
	s := fmt.Sprintf("*%s; %s; revision %s; %d runs", Machine(), time.Now().UTC().Format(time.DateOnly), Revision(), runs)
	switch {
	case noisy == 0:
		s += ", none disturbed by other programs."
	default:
		s += fmt.Sprintf(", **during %d of which other programs used more than %.2f processors: too noisy, repeat on a quiet machine**.", noisy, Noisy)
	}
	return s + "*\n"
}
