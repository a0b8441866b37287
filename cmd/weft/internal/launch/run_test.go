package launch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/pmi"
)

// rank is the program that the tests run: its first argument says what to do.
func rank(args []string) int {
	ctx := context.Background()
	if args[0] == "alone" {
		return 0
	}
	if f := spawnRoles[args[0]]; f != nil {
		if err := f(ctx, args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if args[0] == "deadlock" {
		if err := deadlockRank(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if args[0] == "mpi" {
		if err := mpiRank(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	c, err := pmi.FromEnv(ctx)
	if err != nil || c == nil {
		fmt.Fprintln(os.Stderr, "no launcher:", err)
		return 99
	}
	victim := func(n string) bool { return n == strconv.Itoa(c.Rank) }
	switch args[0] {
	case "addrs":
		fmt.Printf("WEFT_ADDRS=%s\n", os.Getenv("WEFT_ADDRS"))
	case "hello":
		fmt.Printf("rank %d of %d, X=%s\n", c.Rank, c.Size, os.Getenv("X"))
	case "where":
		dir, _ := os.Getwd()
		fmt.Printf("rank %d of %d on %s %s of %s in %s, X=%s, %s\n", c.Rank, c.Size, os.Getenv("HERE"),
			os.Getenv("MPI_LOCALRANKID"), os.Getenv("MPI_LOCALNRANKS"), filepath.Base(dir), os.Getenv("X"), args[1])
		if c.Rank == 0 {
			b, _ := io.ReadAll(os.Stdin)
			fmt.Printf("input %s", b)
		}
	case "processors":
		b, _ := os.ReadFile("/proc/self/status")
		_, list, _ := strings.Cut(string(b), "Cpus_allowed_list:")
		list, _, _ = strings.Cut(list, "\n")
		fmt.Println(strings.TrimSpace(list))
	case "cat":
		if c.Rank == 0 {
			io.Copy(os.Stdout, os.Stdin)
		}
	case "exit":
		if victim(args[1]) {
			return 3
		}
	case "leave":
		if victim(args[1]) {
			return 0
		}
	case "die":
		if victim(args[1]) {
			p, _ := os.FindProcess(os.Getpid())
			p.Kill()
		}
		time.Sleep(time.Minute)
	case "abort":
		if victim(args[1]) {
			c.Abort(42, "out of luck")
		}
		time.Sleep(time.Minute)
	case "outlive", "outlive-exit":
		told := make(chan string, c.Size)
		err := c.Watch(ctx, func(rank int, why string) { told <- fmt.Sprint(rank, " ", why) }, func(error) {})
		if err == nil {
			err = c.Barrier(ctx)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 98
		}
		if args[1] == "all" || victim(args[1]) {
			if args[0] == "outlive-exit" {
				return 3
			}
			p, _ := os.FindProcess(os.Getpid())
			p.Kill()
			time.Sleep(time.Minute)
		}
		fmt.Println("told", <-told)
	case "stubborn":
		signal.Ignore(os.Interrupt, process.TermSignal)
		fallthrough
	case "sleep":
		fmt.Println("asleep")
		time.Sleep(time.Minute)
	}
	if err := c.Barrier(ctx); err != nil {
		return 1
	}
	if err := c.Finalize(ctx); err != nil {
		return 1
	}
	return 0
}

func TestRunStartsEveryRank(t *testing.T) {
	out, _, status := clitest.Weft(t, "", "run", "-n", "5", "-l", "-x", "X=y z", os.Args[0], "hello")
	if status != 0 {
		t.Errorf("status = %d, want 0", status)
	}
	for i := range 5 {
		if want := fmt.Sprintf("[%d] rank %[1]d of 5, X=y z\n", i); strings.Count(out, want) != 1 {
			t.Errorf("output lacks %q", want)
		}
	}
}

func TestRunGivesStdinToRankZero(t *testing.T) {
	if out, _, _ := clitest.Weft(t, "line one\nline two", "run", "-n", "3", "-l", os.Args[0], "cat"); out != "[0] line one\n[0] line two\n" {
		t.Errorf("output = %q", out)
	}
}

func TestRunReportsTheFailedRank(t *testing.T) {
	for _, tt := range []struct {
		name, what string
		status     int
		message    string
	}{
		{"exit status", "exit", 3, "rank 2 (pid "},
		{"without finalize", "leave", 1, "exited without finalizing"},
		{"abort", "abort", 42, "rank 2 aborted the job with code 42: out of luck"},
		{"killed", "die", 128 + 9, "was killed by signal 9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.what == "die" && runtime.GOOS == "windows" {
				tt.status, tt.message = 1, "exited with status 1"
			}
			_, errs, status := clitest.Weft(t, "", "run", "-n", "4", os.Args[0], tt.what, "2")
			if status != tt.status {
				t.Errorf("status = %d, want %d", status, tt.status)
			}
			if !strings.Contains(errs, "rank 2") || !strings.Contains(errs, tt.message) {
				t.Errorf("message %q lacks %q", errs, tt.message)
			}
		})
	}
}

func TestRunGoesOnWithoutTheKilled(t *testing.T) {
	out, errs, status := clitest.Weft(t, "", "run", "-n", "4", "-ft", os.Args[0], "outlive", "2")
	if status != 0 {
		t.Errorf("status = %d, want 0", status)
	}
	if n := strings.Count(out, "told 2 rank 2 (pid "); n != 3 || !strings.Contains(errs, "rank 2 (pid ") {
		t.Errorf("%d ranks were told, want 3", n)
	}
	if _, _, status := clitest.Weft(t, "", "run", "-n", "2", "-ft", os.Args[0], "outlive", "all"); status == 0 {
		t.Error("status 0 of a job without survivors")
	}
	if _, _, status := clitest.Weft(t, "", "run", "-n", "4", "-ft", os.Args[0], "outlive-exit", "2"); status != 0 {
		t.Errorf("status = %d of a job one rank of which exits with 3, want 0", status)
	}
}

func TestRunOfPlainProgramEndsWell(t *testing.T) {
	if _, _, status := clitest.Weft(t, "", "run", "-n", "2", os.Args[0], "alone"); status != 0 {
		t.Errorf("status = %d, want 0", status)
	}
}

func TestRunWrongUseExitsWithTwo(t *testing.T) {
	for _, args := range [][]string{
		{"run"}, {"run", "-n", "0", "x"}, {"run", "-n", "many", "x"}, {"run", "-bogus"}, {"run", "-n", "100000", "x"},
		{"run", "-transport", "pigeon", "x"}, {"run", "-addr", "nowhere", "x"}, {"run", "-x", "=1", "x"},
		{"nameserver", "x"}, {"nameserver", "-token", "ab"},
		{"run", "-x", pmi.EnvNames + "=127.0.0.1:1/secret", "x"},
	} {
		clitest.WantMisused(t, "weft "+args[0], args...)
	}
}

func TestRunOfWhatCannotRun(t *testing.T) {
	lib := t.TempDir()
	os.WriteFile(filepath.Join(lib, "go.mod"), []byte("module lib\n"), 0o666)
	os.WriteFile(filepath.Join(lib, "lib.go"), []byte("package lib\n"), 0o666)
	broken := t.TempDir()
	os.WriteFile(filepath.Join(broken, "main.go"), []byte("package main\nfunc main() {"), 0o666)
	for _, tt := range []struct{ name, program, want string }{
		{"nothing there", filepath.Join(lib, "nothing"), "nothing"},
		{"no such command", "no-such-program-anywhere", "not found"},
		{"library", lib, "not a program"},
		{"does not compile", broken, "building"},
		{"empty directory", t.TempDir(), "building"},
		{"second program", os.Args[0] + " alone : no-such-program-anywhere", "no-such-program-anywhere"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, errs, status := clitest.Weft(t, "", append([]string{"run"}, strings.Fields(tt.program)...)...)
			if status != cli.ExitFail || !strings.Contains(errs, tt.want) {
				t.Errorf("status %d, message %q; want 1 and %q", status, errs, tt.want)
			}
		})
	}
}

func TestRunBuildsAPackage(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module prog\n"), 0o666)
	os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\nfunc main() { println(\"built\") }"), 0o666)
	for _, program := range []string{dir, filepath.Join(dir, "main.go")} {
		if _, errs, status := clitest.Weft(t, "", "run", "-n", "2", program); status != 0 || strings.Count(errs, "built\n") != 2 {
			t.Errorf("%s: status %d, output %q", program, status, errs)
		}
	}
}

func TestPrefixerKeepsLinesWhole(t *testing.T) {
	var b bytes.Buffer
	p := &prefixer{to: &lineWriter{w: &b}, rank: "7"}
	for _, s := range []string{"one", " line\ntwo\n", "", "\n", "end"} {
		p.Write([]byte(s))
	}
	p.flush()
	if got, want := b.String(), "[7] one line\n[7] two\n[7] \n[7] end\n"; got != want {
		t.Errorf("output = %q, want %q", got, want)
	}
	b.Reset()
	p.Write(bytes.Repeat([]byte("x"), maxLine))
	if b.Len() < maxLine {
		t.Error("a line without end is held for ever")
	}
}
