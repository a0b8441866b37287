package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
)

// asked lets one rank spawn, of a launcher that grants it, and returns what the
// launcher was asked for.
func asked(t *testing.T, extended bool, req *Spawn, grant func(*Spawn) (*Spawned, error)) (*Spawn, *Spawned, error) {
	t.Helper()
	s := NewServer(1, "kvs_spawn")
	if extended {
		t.Setenv(EnvWatch, s.Name())
	}
	var got *Spawn
	s.OnSpawn = func(rank int, r *Spawn) (*Spawned, error) {
		got = r
		return grant(r)
	}
	c := joined(t, s, 1)
	out, err := c.Spawn(t.Context(), req)
	if _, err := c.Get(t.Context(), "nothing"); err == nil || !errors.Is(err, ErrRefused) {
		t.Errorf("the connection after a spawn: %v", err)
	}
	return got, out, err
}

func TestSpawnReachesTheLauncher(t *testing.T) {
	for _, extended := range []bool{false, true} {
		req := &Spawn{
			Commands: []Command{
				{Path: "/bin/first one", Args: []string{"a b", "", "c=d"}, N: 2, Info: map[string]string{"wdir": "/some where"}},
				{Path: "second", N: 1},
			},
			Preput: map[string]string{"key": strings.Repeat("long value ", 500)},
		}
		if extended {
			req.Commands[1].Args = []string{"new\nline", "endcmd"}
		}
		got, out, err := asked(t, extended, req, func(r *Spawn) (*Spawned, error) {
			return &Spawned{Job: "kvs_new", Errs: make([]error, r.Size())}, nil
		})
		if err != nil || out.Err() != nil || out.Job != "kvs_new" || len(out.Errs) != 3 {
			t.Errorf("extended=%t: %+v, %v", extended, out, err)
		}
		if !reflect.DeepEqual(got.Commands, req.Commands) {
			t.Errorf("extended=%t: commands %+v", extended, got.Commands)
		}
		// The new processes read what was put for them.
		n := NewServer(1, "kvs_new")
		if err := n.Preput(got.Preput); err != nil {
			t.Fatal(err)
		}
		here, there := net.Pipe()
		go n.Serve(t.Context(), 0, there)
		c, err := NewClient(t.Context(), here, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := c.Get(t.Context(), "key"); err != nil || v != req.Preput["key"] {
			t.Errorf("extended=%t: value of %d bytes, %v", extended, len(v), err)
		}
	}
}

func TestSpawnErrorsReachTheRank(t *testing.T) {
	req := &Spawn{Commands: []Command{{Path: "x", N: 3}}}
	_, out, err := asked(t, true, req, func(*Spawn) (*Spawned, error) {
		return &Spawned{Errs: []error{nil, errors.New("no such file"), nil}}, nil
	})
	if err != nil || len(out.Errs) != 3 || out.Errs[0] != nil || out.Errs[2] != nil ||
		!errors.Is(out.Errs[1], ErrRefused) || !strings.Contains(out.Errs[1].Error(), "no such file") {
		t.Errorf("%+v, %v", out, err)
	}
	_, out, err = asked(t, true, req, func(*Spawn) (*Spawned, error) { return nil, errors.New("out of everything") })
	if err != nil || out.Err() == nil || !strings.Contains(out.Err().Error(), "out of everything") {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestServerRefusesToSpawn(t *testing.T) {
	begin := func(lines ...string) string { return "mcmd=spawn\n" + strings.Join(lines, "\n") + "\nendcmd\n" }
	many := make([]string, maxSpawnLines+1)
	for i := range many {
		many[i] = fmt.Sprintf("x%d=", i)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"nothing said", begin(), "closed"},
		{"no program", begin("nprocs=1", "totspawns=1", "spawnssofar=1"), "closed"},
		{"no number", begin("execname=x", "totspawns=1", "spawnssofar=1"), "rc=-1"},
		{"too many processes", begin("execname=x", "nprocs=9999", "totspawns=1", "spawnssofar=1"), "closed"},
		{"not in order", begin("execname=x", "nprocs=1", "totspawns=2", "spawnssofar=2"), "closed"},
		{"argument missing", begin("execname=x", "nprocs=1", "argcnt=2", "arg1=y", "totspawns=1", "spawnssofar=1"), "closed"},
		{"not encoded", begin(encodedKey+"=1", "execname=?", "nprocs=1", "totspawns=1", "spawnssofar=1"), "closed"},
		{"key twice", begin("execname=x", "execname=y"), "closed"},
		{"too many lines", begin(many...), "closed"},
		{"long line", begin("execname=" + strings.Repeat("x", MaxLine)), "closed"},
		{"other command between", begin("execname=x", "nprocs=1", "totspawns=2", "spawnssofar=1") + "cmd=finalize\n", "closed"},
		{"not here", begin("execname=x", "nprocs=1", "totspawns=1", "spawnssofar=1"), "rc=-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewServer(1, "k")
			here, there := net.Pipe()
			done := make(chan error, 1)
			go func() { done <- s.Serve(t.Context(), 0, there) }()
			go func() { _, _ = here.Write([]byte(tt.text)) }()
			reply, err := bufio.NewReader(here).ReadString('\n')
			if tt.want == "closed" {
				if err == nil || !errors.Is(<-done, ErrProtocol) {
					t.Errorf("reply %q", reply)
				}
			} else if !strings.Contains(reply, tt.want) {
				t.Errorf("reply %q, %v; want %q", reply, err, tt.want)
			}
		})
	}
}

func TestSpawnIsBounded(t *testing.T) {
	line := "x=" + strings.Repeat("y", MaxLine/2)
	var b strings.Builder
	for i := range maxSpawnBytes / len(line) {
		fmt.Fprintf(&b, "%d%s\n", i, line)
	}
	if _, err := readSpawn(bufio.NewReaderSize(strings.NewReader(b.String()+b.String()), MaxLine)); !errors.Is(err, ErrProtocol) {
		t.Errorf("error = %v", err)
	}
	for _, s := range []Spawn{
		{}, {Commands: make([]Command, MaxCommands+1)}, {Commands: []Command{{Path: "x", N: MaxSpawn}, {Path: "x", N: 1}}},
		{Commands: []Command{{Path: "x", N: 1, Args: make([]string, MaxArgs+1)}}},
		{Commands: []Command{{Path: "x", N: 1, Args: []string{strings.Repeat("x", MaxArg+1)}}}},
		{Commands: []Command{{Path: "x", N: 1, Args: []string{"\x00"}}}},
		{Commands: []Command{{Path: "x", N: 1, Info: map[string]string{"": ""}}}},
	} {
		if s.Check() == nil {
			t.Errorf("%d commands are taken", len(s.Commands))
		}
	}
}

func TestSoft(t *testing.T) {
	for _, tt := range []struct {
		soft          string
		n, room, want int
	}{
		{"", 5, 3, 5}, {"5", 5, 5, 5}, {"5", 5, 4, 0}, {"1,3,7", 5, 9, 3}, {"0:10", 5, 3, 3}, {"2:100:3", 9, 9, 8},
		{"9:1:-4", 8, 8, 5}, {"9:2:-4", 4, 9, 0}, {"1:9:0", 4, 4, 0}, {"x", 4, 4, 0}, {"1:2:3:4", 4, 4, 0}, {"0", 4, 4, 0}, {"-1", 4, 4, 0},
	} {
		got, err := Soft(tt.soft, tt.n, tt.room)
		if got != tt.want || (err == nil) != (tt.want > 0) {
			t.Errorf("Soft(%q, %d, %d) = %d, %v; want %d", tt.soft, tt.n, tt.room, got, err, tt.want)
		}
	}
}

func TestDeathInAnotherGroupIsTold(t *testing.T) {
	s := NewServer(1, "kvs_a")
	t.Setenv(EnvWatch, s.Name())
	c := joined(t, s, 1)
	told := make(chan string, 1)
	c.OnOther = func(job string, rank int, why string) { told <- fmt.Sprint(job, " ", rank, " ", why) }
	own := func(rank int, why string) { t.Errorf("told of rank %d: %s", rank, why) }
	if err := c.Watch(t.Context(), own, func(error) {}); err != nil {
		t.Fatal(err)
	}
	s.FailOther("kvs_b", 7, "was\nkilled")
	if got := <-told; got != "kvs_b 7 was killed" {
		t.Errorf("told %q", got)
	}
	if got := c.ProcessName(); got != ProcessName("kvs_a", 0) {
		t.Errorf("own name %q", got)
	}
}

func TestAppNumAndUniverse(t *testing.T) {
	s := NewServer(2, "k")
	s.AppNums, s.Universe = []int{0, 3}, 9
	here, there := net.Pipe()
	go s.Serve(t.Context(), 1, there)
	c, err := NewClient(t.Context(), here, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.AppNum(t.Context()); n != 3 || err != nil {
		t.Errorf("command %d, %v", n, err)
	}
	if n, err := c.UniverseSize(t.Context()); n != 9 || err != nil {
		t.Errorf("universe %d, %v", n, err)
	}
}

func FuzzReadSpawn(f *testing.F) {
	f.Add("nprocs=1\nexecname=x\ntotspawns=1\nspawnssofar=1\nargcnt=1\narg1=y\npreput_num=1\npreput_key_0=k\npreput_val_0=v\ninfo_num=0\nendcmd\n")
	f.Add(encodedKey + "=1\nexecname=eA\nnprocs=1\ntotspawns=2\nspawnssofar=1\nendcmd\nmcmd=spawn\nexecname=x\nendcmd\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := readSpawn(bufio.NewReaderSize(strings.NewReader(text), MaxLine))
		if err == nil && (len(s.Commands) == 0 || len(s.Commands) > MaxCommands) {
			t.Errorf("%d commands", len(s.Commands))
		}
	})
}

// Of the deaths in other groups a launcher keeps maxOthers for those that watch
// later.
func TestOthersAreBounded(t *testing.T) {
	s := NewServer(1, "kvs_a")
	for i := range maxOthers + 10 {
		s.FailOther("kvs_b", i, "killed")
	}
	if len(s.others) != maxOthers || !strings.Contains(s.others[maxOthers-1], fmt.Sprintf("rank=%d ", maxOthers-1)) {
		t.Errorf("%d deaths are kept, the last %q; want %d", len(s.others), s.others[len(s.others)-1], maxOthers)
	}
}
