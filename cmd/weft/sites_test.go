package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi"
)

// rank is the program that tests of jobs in sites run.
func rank(args []string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := roles[args[0]](ctx, args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return cli.ExitFail
	}
	return cli.ExitOK
}

var roles = map[string]func(context.Context, []string) error{"exchange": exchange, "count": count}

// exchange sends messages of all sizes between all pairs of ranks, and reduces.
func exchange(ctx context.Context, _ []string) error {
	w, err := mpi.Init(ctx)
	if err != nil {
		return err
	}
	c := w.Comm()
	for _, size := range []int{0, 1, 1000, 70_000, 1 << 20} {
		for shift := 1; shift < c.Size(); shift++ {
			to, from := (c.Rank()+shift)%c.Size(), (c.Rank()-shift+c.Size())%c.Size()
			got := make([]byte, size)
			r, err := mpi.Irecv(c, got, from, size)
			if err != nil {
				return err
			}
			if err := mpi.Send(ctx, c, bytes.Repeat([]byte{byte(c.Rank() + 1)}, size), to, size); err != nil {
				return err
			}
			if _, err := r.Wait(ctx); err != nil {
				return err
			}
			if !bytes.Equal(got, bytes.Repeat([]byte{byte(from + 1)}, size)) {
				return fmt.Errorf("rank %d: %d bytes of rank %d are not what it sent", c.Rank(), size, from)
			}
		}
	}
	sum := make([]int64, 1000)
	for i := range sum {
		sum[i] = int64(c.Rank() + i)
	}
	out := make([]int64, len(sum))
	if err := mpi.Allreduce(ctx, c, sum, out, mpi.Sum); err != nil {
		return err
	}
	for i, v := range out {
		if want := int64(c.Size()*(c.Size()-1)/2 + i*c.Size()); v != want {
			return fmt.Errorf("element %d of the sum is %d, want %d", i, v, want)
		}
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d is right\n", c.Rank(), c.Size())
	return nil
}

// count has rank 0 send numbers to the last rank for a while, which checks that each comes once and in order.
func count(ctx context.Context, args []string) error {
	w, err := mpi.Init(ctx)
	if err != nil {
		return err
	}
	c := w.Comm()
	last := c.Size() - 1
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	msg := make([]int64, 200)
	switch c.Rank() {
	case 0:
		fmt.Println("begins")
		n := int64(0)
		for end := time.Now().Add(d); time.Now().Before(end); n++ {
			msg[0], msg[len(msg)-1] = n, n
			if err := mpi.Send(ctx, c, msg, last, 1); err != nil {
				return fmt.Errorf("number %d: %w", n, err)
			}
		}
		msg[0], msg[len(msg)-1] = -n, -n
		if err := mpi.Send(ctx, c, msg, last, 1); err != nil {
			return err
		}
		if _, err := mpi.Recv(ctx, c, msg[:1], last, 2); err != nil {
			return err
		}
		if msg[0] != n {
			return fmt.Errorf("%d numbers have arrived of %d", msg[0], n)
		}
		fmt.Printf("%d numbers are right\n", n)
	case last:
		n, pause, heard := int64(0), time.Duration(0), time.Now()
		for {
			if n > 0 {
				pause, heard = max(pause, time.Since(heard)), time.Now()
			}
			if _, err := mpi.Recv(ctx, c, msg, 0, 1); err != nil {
				return fmt.Errorf("number %d: %w", n, err)
			}
			if msg[0] != msg[len(msg)-1] || msg[0] != n && msg[0] != -n {
				return fmt.Errorf("got numbers %d and %d, want %d", msg[0], msg[len(msg)-1], n)
			}
			if msg[0] == -n && n > 0 {
				break
			}
			n++
		}
		fmt.Printf("the longest pause was %v\n", pause.Round(time.Millisecond))
		if err := mpi.Send(ctx, c, []int64{n}, 0, 2); err != nil {
			return err
		}
	}
	return w.Finalize(ctx)
}

// limit bounds waits for other processes.
const limit = 30 * time.Second

// freePorts returns addresses of UDP and TCP ports that are free.
func freePorts(t *testing.T, udp, tcp int) (addrs []string) {
	t.Helper()
	for i := range udp + tcp {
		if i < udp {
			c, err := net.ListenPacket("udp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			addrs = append(addrs, c.LocalAddr().String())
			continue
		}
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// installation is sites on this host, with a gateway process for each gateway.
type installation struct {
	t    *testing.T
	name string
	file *sites.File

	logs map[*sites.Gateway]*bytes.Buffer
	up   map[*sites.Gateway]*exec.Cmd
}

// install makes n sites in a line, of two ranks and some gateways each, and starts the gateways.
func install(t *testing.T, n, gateways int) *installation {
	t.Helper()
	dir := t.TempDir()
	total := n * gateways
	ports := freePorts(t, 2*total, total)
	var b strings.Builder
	b.WriteString("jobs key-file k\n")
	for s := range n {
		fmt.Fprintf(&b, "site s%d\nranks %d-%d\n", s, 2*s, 2*s+1)
		for g := range gateways {
			i := s*gateways + g
			fmt.Fprintf(&b, "gateway g%d lan %s wan %s status %s\n", g, ports[2*i], ports[2*i+1], ports[2*total+i])
		}
		if s > 0 {
			fmt.Fprintf(&b, "leg s%d s%d key-file k\n", s-1, s)
		}
	}
	x := &installation{
		t: t, name: filepath.Join(dir, "sites"), logs: make(map[*sites.Gateway]*bytes.Buffer), up: make(map[*sites.Gateway]*exec.Cmd),
	}
	err := errors.Join(sites.WriteKey(filepath.Join(dir, "k")), os.WriteFile(x.name, []byte(b.String()), 0o644))
	if err == nil {
		x.file, err = sites.Read(x.name)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range x.file.Sites {
		for _, g := range s.Gateways {
			x.start(s, g)
		}
	}
	t.Cleanup(func() {
		for g := range x.up {
			x.kill(g)
		}
		for g, log := range x.logs {
			if t.Failed() {
				t.Logf("gateway %s at line %d:\n%s", g.Name, g.Line, log)
			}
		}
	})
	x.ready()
	return x
}

func (x *installation) start(s *sites.Site, g *sites.Gateway) {
	x.t.Helper()
	cmd := clitest.Command(x.t, "gateway", "-sites", x.name, "-site", s.Name, "-gateway", g.Name)
	if x.logs[g] == nil {
		x.logs[g] = new(bytes.Buffer)
	}
	cmd.Stderr = x.logs[g]
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	x.up[g] = cmd
}

// kill ends a gateway at once.
func (x *installation) kill(g *sites.Gateway) {
	_ = x.up[g].Process.Kill()
	_ = x.up[g].Wait()
	delete(x.up, g)
}

// ready waits until all gateways have their legs.
func (x *installation) ready() {
	x.t.Helper()
	for g := range x.up {
		if _, errs, status := clitest.Weft(x.t, "", "gateway", "status", "-json", "-wait", limit.String(), g.Status.String()); status != 0 {
			x.t.Fatalf("gateway %s at line %d: %s", g.Name, g.Line, errs)
		}
	}
}

// sent returns how many bytes a gateway has sent to other gateways, and how many flows it has.
func (x *installation) sent(g *sites.Gateway) (bytes uint64, flows int) {
	x.t.Helper()
	out, _, _ := clitest.Weft(x.t, "", "gateway", "status", "-json", g.Status.String())
	var s struct {
		Flows   int `json:"flow_count"`
		Classes []struct {
			Bytes uint64 `json:"bytes_sent"`
		} `json:"classes"`
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		x.t.Fatal(err)
	}
	for _, c := range s.Classes {
		bytes += c.Bytes
	}
	return bytes, s.Flows
}

// An MPI job whose ranks are in several sites does its work through gateways, over one and two hops, in all modes.
func TestJobInSites(t *testing.T) {
	for _, n := range []int{2, 3} {
		x := install(t, n, 1)
		for _, mode := range []string{"piecewise", "chained", "lossy"} {
			before, _ := x.sent(x.file.Sites[0].Gateways[0])
			out, errs, status := clitest.Weft(t, "", "run", "-n", fmt.Sprint(2*n), "-sites", x.name, "-mode", mode, os.Args[0], "exchange")
			if status != 0 || strings.Count(out, fmt.Sprintf("of %d is right\n", 2*n)) != 2*n {
				t.Errorf("%d sites, %s: status %d, %s%s", n, mode, status, out, errs)
			}
			// Each rank of the first site sends 1 MiB to each rank of the others, at least.
			if after, _ := x.sent(x.file.Sites[0].Gateways[0]); after-before < uint64(2*(2*n-2))<<20 {
				t.Errorf("%d sites, %s: the gateway of site s0 has sent %d bytes", n, mode, after-before)
			}
		}
	}
}

// A job goes on when a gateway of its site or of the other one is killed, and when it returns: nothing is lost, doubled or
// out of order.
func TestGatewayDiesDuringJob(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	x := install(t, 2, 2)
	rounds := 0
	for end := time.Now().Add(testenv.Soak(t, 0)); rounds == 0 || time.Now().Before(end); rounds++ {
		for _, s := range x.file.Sites {
			for _, g := range s.Gateways {
				x.killDuringJob(s, g, time.Duration(r.IntN(1000))*time.Millisecond)
			}
		}
	}
	t.Logf("%d gateways killed", rounds*4)
}

// killDuringJob runs a job, kills a gateway some time after its begin, and starts it again at the end.
func (x *installation) killDuringJob(s *sites.Site, g *sites.Gateway, after time.Duration) {
	t := x.t
	t.Helper()
	cmd := clitest.Command(t, "run", "-n", "4", "-sites", x.name, os.Args[0], "count", "1500ms")
	r, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1000)
	for killed := false; ; {
		n, err := r.Read(buf)
		out.Write(buf[:n])
		if !killed && strings.Contains(out.String(), "begins") {
			killed = true
			time.Sleep(after)
			x.kill(g)
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), " numbers are right\n") {
		t.Errorf("gateway %s of site %s killed after %v: %v, %s%s", g.Name, s.Name, after, err, out.String(), errs.String())
	}
	t.Logf("gateway %s of site %s killed after %v: %s", g.Name, s.Name, after, out.String())
	x.start(s, g)
	x.ready()
}
