package interop

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
)

// siteJobTime bounds one job over emulated sites.
const siteJobTime = 2 * time.Minute

// resultsOver runs every program once over a network with sites and returns what each says.
func resultsOver(t *testing.T, j siteJob) map[string]string {
	t.Helper()
	results := make(map[string]string)
	file := filepath.Join(t.TempDir(), "file")
	for _, name := range []string{"farm", "halo", "alltoall", "putget", "spawn", "file", "transfer"} {
		with := j
		with.on = -1
		command := []string{os.Args[0]}
		switch name {
		case "farm":
			command = []string{tool(t, "farm"), "-task", "30KB", "-tasks", "60", "-json"}
		case "halo":
			command = []string{example(t, "halo")}
		case "alltoall":
			with.env = []string{envPattern + "=alltoall 3 30000"}
		case "file":
			with.env = []string{envProgram + "=file " + file}
		case "transfer":
			with.env = []string{envProgram + "=transfer 4000000"}
		default:
			with.env = []string{envProgram + "=" + name}
		}
		out, err := with.run(t, siteJobTime, command...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		switch name {
		case "farm":
			var f farmResult
			if err := lastResult(out, &f); err != nil || !f.Verified {
				t.Errorf("farm: %v: %s", err, out)
			}
			out = fmt.Sprint(f.Tasks, f.Bytes, f.SHA256)
		case "alltoall":
			out = "checked by its ranks" // printed are seconds
		}
		results[name] = out
		os.Remove(file)
	}
	return results
}

// example builds one of the examples of package mpi.
func example(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(tools.dir, "example-"+name)
	tools.mu.Lock()
	defer tools.mu.Unlock()
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if said, err := command(t, "go", "build", "-o", path, "../mpi/examples/"+name).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, said)
	}
	return path
}

// Programs give the same results through gateways as over a network without sites: over one
// leg and over two, with each way to acknowledge.
func TestGatewaysGiveTheSameResults(t *testing.T) {
	bounded(t)
	testenv.Slow(t, "a job over each kind of way between sites")
	testenv.Networks(t)
	two, three := resultsOver(t, siteJob{sites: 2, hosts: 2, wan: "1gbit 2ms"}), resultsOver(t, siteJob{sites: 3, hosts: 1, wan: "1gbit 2ms"})
	for _, tt := range []struct {
		name string
		job  siteJob
	}{
		{"same addresses", siteJob{sites: 2, hosts: 2, gateways: 1, wan: "1gbit 2ms", mode: "piecewise", flags: []string{"-overlap", "yes"}}},
		{"chained, loss", siteJob{sites: 2, hosts: 2, gateways: 2, wan: "1gbit 2ms loss 2%", mode: "chained"}},
		{"two legs", siteJob{sites: 3, hosts: 1, gateways: 1, wan: "1gbit 2ms", legs: "1-2,2-3"}},
		{"two legs, chained", siteJob{sites: 3, hosts: 1, gateways: 1, wan: "1gbit 2ms", legs: "1-2,2-3", mode: "chained"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wanted := two
			if tt.job.sites == 3 {
				wanted = three
			}
			got := resultsOver(t, tt.job)
			for name, result := range wanted {
				if got[name] != result {
					t.Errorf("%s: %.500q, want %.500q", name, got[name], result)
				}
			}
			if len(wanted) != 7 {
				t.Errorf("%d programs, want 7", len(wanted))
			}
		})
	}
}

// envKills is how often each job of TestGatewaysAreKilled is run, if not once.
const envKills = "WEFT_GATEWAY_KILLS"

// A gateway is killed at a random moment of a job, and another one takes over: the job gives its
// result, nothing is lost, doubled or in another order. WEFT_GATEWAY_KILLS=100 kills 100 in each job.
func TestGatewaysAreKilled(t *testing.T) {
	bounded(t)
	testenv.Slow(t, "jobs whose gateways are killed")
	testenv.Networks(t)
	kills, transfer := 1, int64(50<<20)
	if s := os.Getenv(envKills); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("%s=%s: want a number of kills", envKills, s)
		}
		kills, transfer = n, 1<<30
	}
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	for _, tt := range []struct {
		name    string
		env     []string
		command []string
		ok      func(out string) error
	}{
		{"farm", nil, []string{tool(t, "farm"), "-json", "-task", "30KB", "-tasks", "2000"}, func(out string) error {
			var f farmResult
			if err := lastResult(out, &f); err != nil {
				return err
			}
			if !f.Verified || f.Tasks != 2000 {
				return fmt.Errorf("%+v", f)
			}
			return nil
		}},
		{"allreduce", []string{envPattern + "=allreduce 80 8192"}, []string{os.Args[0]}, func(out string) error {
			var p patternResult
			return lastResult(out, &p)
		}},
		{"transfer", []string{envProgram + fmt.Sprintf("=transfer %d", transfer)}, []string{os.Args[0]}, func(out string) error {
			if want := fmt.Sprintf("%d messages\n", (transfer+transferMessage-1)/transferMessage); out != want {
				return fmt.Errorf("%q, want %q", out, want)
			}
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := siteJob{sites: 2, hosts: 2, gateways: 2, wan: "1gbit 9ms", on: -1, env: tt.env}
			undisturbed := killedJob(t, &j, tt.command, tt.ok, nil)
			least, jobs, hits := undisturbed, 0, 0
			var worst, sum time.Duration
			for ; hits < kills && jobs < 3*kills+3; jobs++ { // a job may be over before its gateway is killed
				at := time.Duration(r.Int64N(int64(least)))
				site, gateway := 1+r.IntN(2), 1+r.IntN(2)
				hit := false
				took := killedJob(t, &j, tt.command, tt.ok, func(p *siteProcess) {
					time.Sleep(at)
					_, err := p.control(fmt.Sprintf("kill site %d gateway %d", site, gateway))
					hit = err == nil
				})
				if t.Failed() {
					t.Fatalf("gateway %d of site %d killed after %v", gateway, site, at)
				}
				if least = min(least, took); hit {
					hits++
					worst, sum = max(worst, took), sum+took
				}
			}
			if hits < kills {
				t.Fatalf("%d gateways were killed while %d jobs ran, want %d", hits, jobs, kills)
			}
			t.Logf("%d gateways killed: jobs took %v in the mean, %v at most; the first one, undisturbed, %v, the shortest of all %v",
				hits, sum/time.Duration(hits), worst, undisturbed, least)
		})
	}
}

// killedJob runs a job, disturbs it from when its gateways are there, checks its output and
// returns how long it took from then on.
func killedJob(t *testing.T, j *siteJob, command []string, ok func(string) error, disturb func(*siteProcess)) time.Duration {
	t.Helper()
	p, err := j.start(t, siteJobTime, command...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.control("begun"); err != nil {
		p.cancel()
		p.wait()
		t.Fatalf("%v: %s", err, p.errs.String())
	}
	begun := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if disturb != nil {
			disturb(p)
		}
	}()
	out, err := p.wait()
	took := time.Since(begun)
	<-done
	if err == nil {
		err = ok(out)
	}
	if err != nil {
		t.Error(err)
	}
	return took
}
