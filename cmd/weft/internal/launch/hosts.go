package launch

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/internal/sites"
)

// host is a machine that ranks run on.
type host struct {
	name  string
	slots int // ranks it takes
	most  int // ranks it takes with -oversubscribe; 0: any number
}

// defaultRSH starts commands on other hosts, without asking for passwords.
const defaultRSH = "ssh -o BatchMode=yes"

// maxJobHosts bounds the hosts of a job.
const maxJobHosts = 4096

// parseHosts reads "name:slots,name,…".
func parseHosts(list string) ([]host, error) {
	var hosts []host
	for item := range strings.SplitSeq(list, ",") {
		h, err := parseHost(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// parseHost reads "name", "name:slots" or "[address]:slots".
func parseHost(item string) (host, error) {
	name, slots := item, ""
	if i := strings.LastIndexByte(item, ':'); i >= 0 &&
		(strings.Count(item, ":") == 1 || strings.HasSuffix(item[:i], "]")) {
		name, slots = item[:i], item[i+1:]
	}
	h := host{name: strings.Trim(name, "[]"), slots: 1}
	if slots != "" || strings.HasSuffix(item, ":") {
		n, err := strconv.Atoi(slots)
		if err != nil || n < 1 || n > MaxRanks {
			return h, fmt.Errorf("host %q: want 1 to %d slots", item, MaxRanks)
		}
		h.slots = n
	}
	// A name that begins with a dash would be an option of the remote shell.
	if h.name == "" || strings.HasPrefix(h.name, "-") || strings.ContainsAny(h.name, " \t'\"\\$`;&|<>()") {
		return h, fmt.Errorf("host %q: not a host name", item)
	}
	return h, nil
}

// parseHostLine reads a host of a file: "name", "name:slots" or "name slots=N max_slots=M".
func parseHostLine(fields []string) (host, error) {
	h, err := parseHost(fields[0])
	for _, f := range fields[1:] {
		if err != nil {
			return h, err
		}
		key, text, _ := strings.Cut(f, "=")
		to := &h.slots
		switch key {
		case "slots":
		case "max_slots", "max-slots":
			to = &h.most
		default:
			return h, fmt.Errorf("host %q: %q: want NAME slots=N max_slots=M", h.name, f)
		}
		if *to, err = strconv.Atoi(text); err != nil || *to < 1 || *to > MaxRanks {
			return h, fmt.Errorf("host %q: %s: want 1 to %d slots", h.name, f, MaxRanks)
		}
	}
	if err == nil && h.most > 0 && h.most < h.slots {
		err = fmt.Errorf("host %q: %d slots, but at most %d", h.name, h.slots, h.most)
	}
	return h, err
}

// readHostFile reads a file with a host a line; # begins a comment.
func readHostFile(name string) ([]host, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var hosts []host
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		h, err := parseHostLine(fields)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if hosts = append(hosts, h); len(hosts) > maxJobHosts {
			return nil, fmt.Errorf("%s: more than %d hosts", name, maxJobHosts)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("%s: no hosts", name)
	}
	return hosts, nil
}

// spread places the ranks of a job on hosts, and connects them to the launcher
// over TCP: each proves with a token that it belongs to the job.
type spread struct {
	hosts   []host
	place   []int // by rank: index in hosts
	local   []int // by rank: how many ranks of the host come before
	rsh     []string
	dir     string   // the ranks' working directory
	dirs    []string // by rank, if they have their own
	spawned bool     // not those that the job begins with
	allEnv  bool     // other hosts get all variables of the environment

	addr, token string
	listener    net.Listener
}

// placement tells how ranks are placed on hosts.
type placement struct {
	perHost int  // ranks on each host at most, instead of its slots; 0: its slots
	byNode  bool // on the hosts in turn, instead of filling one after the other
	over    bool // when all slots are taken go on in the same order
}

// newSpread places n ranks on hosts. n 0 stands for all slots.
func newSpread(hosts []host, n int, rsh, dir string, how placement) (*spread, error) {
	s := &spread{hosts: hosts, rsh: strings.Fields(rsh), dir: dir, token: rand.Text()}
	if len(s.rsh) == 0 {
		return nil, errors.New("-rsh is empty")
	}
	order := slotOrder(hosts, how)
	switch {
	case n == 0:
		n = len(order)
	case n > len(order) && how.over:
	case n > len(order) && how.perHost > 0:
		return nil, fmt.Errorf("%d ranks do not fit on %d hosts with -ppn %d; -oversubscribe allows more", n, len(hosts), how.perHost)
	case n > len(order):
		return nil, fmt.Errorf("%d ranks do not fit on hosts with %d slots; -oversubscribe allows more", n, len(order))
	}
	if n > MaxRanks {
		return nil, fmt.Errorf("%d slots: want 1 to %d ranks", n, MaxRanks)
	}
	used := make([]int, len(hosts))
	for i, full := 0, 0; len(s.place) < n; i++ {
		h := order[i%len(order)]
		if m := hosts[h].most; m > 0 && used[h] == m {
			if full++; full == len(order) {
				return nil, fmt.Errorf("%d ranks do not fit on hosts with %d slots at most", n, len(s.place))
			}
			continue
		}
		full = 0
		s.place, s.local = append(s.place, h), append(s.local, used[h])
		used[h]++
	}
	if dir == "" {
		var err error
		if s.dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// slotOrder returns the host of each slot, in the order in which ranks take them.
func slotOrder(hosts []host, how placement) (order []int) {
	slots := func(h host) int {
		if how.perHost > 0 {
			return how.perHost
		}
		return h.slots
	}
	rounds := 0
	for i, h := range hosts {
		rounds = max(rounds, slots(h))
		if !how.byNode {
			order = append(order, slices.Repeat([]int{i}, slots(h))...)
		}
	}
	for round := 0; how.byNode && round < rounds; round++ {
		for i, h := range hosts {
			if round < slots(h) {
				order = append(order, i)
			}
		}
	}
	return order
}

// open lets ranks connect at addr; if that is empty, at the address that the
// first of the other hosts is reached from.
func (s *spread) open(ctx context.Context, server *pmi.Server, addr string) error {
	if addr == "" {
		addr = "127.0.0.1"
		for _, h := range s.hosts {
			if !h.here() {
				addr = addressTo(h.name)
				break
			}
		}
	}
	var err error
	if s.listener, err = net.Listen("tcp", net.JoinHostPort(addr, "0")); err != nil {
		return fmt.Errorf("listening for the ranks: %w", err)
	}
	s.addr = s.listener.Addr().String()
	go server.ServeListener(ctx, s.listener, s.token)
	return nil
}

// allHere reports whether all ranks run on this host.
func (s *spread) allHere() bool {
	return !slices.ContainsFunc(s.hosts, func(h host) bool { return !h.here() })
}

// here reports whether the host is this one, by its own name as well: its ranks need no remote
// shell.
func (h host) here() bool { return h.name == "localhost" || h.name == ownName() }

// ownName returns the name of this host; empty if the system does not tell it.
var ownName = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return name
})

// addressTo returns the address of this host that packets to another one come
// from. If its name means nothing here, as one that only the remote shell knows,
// it is the one that packets to anywhere come from.
func addressTo(name string) string {
	for _, to := range []string{name, "192.0.2.1"} {
		// Connecting a UDP socket sends nothing; it asks for a route.
		if c, err := net.Dial("udp", net.JoinHostPort(to, "9")); err == nil {
			defer c.Close()
			if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
				return a.IP.String()
			}
		}
	}
	return "127.0.0.1"
}

// env returns what connects a rank to the launcher, without the token.
func (s *spread) env(rank int) []string {
	ranks := 0
	for _, p := range s.place {
		if p == s.place[rank] {
			ranks++
		}
	}
	return []string{
		pmi.EnvFD + "=", pmi.EnvPort + "=" + s.addr, pmi.EnvID + "=" + strconv.Itoa(rank),
		"MPI_LOCALRANKID=" + strconv.Itoa(s.local[rank]), "MPI_LOCALNRANKS=" + strconv.Itoa(ranks),
	}
}

// prepare makes cmd, whose environment beyond this process's own is extra,
// start a rank on its host. feed must be called after the start.
func (s *spread) prepare(cmd *exec.Cmd, rank int, extra []string) (feed func(), err error) {
	h := s.hosts[s.place[rank]]
	if h.here() {
		cmd.Env = append(cmd.Env, pmi.EnvToken+"="+s.token)
		return func() {}, nil
	}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		secret := strings.HasPrefix(v, pmi.EnvWatch) || strings.HasPrefix(v, pmi.EnvToken) || name == sites.EnvProcess
		if (s.allEnv || strings.HasPrefix(v, "WEFT_")) && isShellName(name) && !secret {
			extra = append([]string{v}, extra...)
		}
	}
	dir := s.dir
	if s.dirs != nil && s.dirs[rank] != "" {
		dir = s.dirs[rank]
	}
	line, err := startLine(dir, append(extra, pmi.EnvToken+"="+s.token), append([]string{cmd.Path}, cmd.Args[1:]...))
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", h.name, err)
	}
	argv := append(append([]string{}, s.rsh...), h.name, remoteScript)
	if cmd.Path, err = exec.LookPath(argv[0]); err != nil {
		return nil, fmt.Errorf("host %s: %w", h.name, err)
	}
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdin = argv, nil, "", nil
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return func() {
		go func() {
			defer stdin.Close()
			if _, err := io.WriteString(stdin, line+"\n"); err == nil && rank == 0 && !s.spawned {
				io.Copy(stdin, os.Stdin)
			}
		}()
	}, nil
}

// remoteScript is what the shell of another host runs: the first line of its input,
// where other users of either host do not see it. The variable weft_nl is a line feed,
// see quote.
const remoteScript = `weft_nl=$(printf '\nx') && weft_nl=${weft_nl%x} && IFS= read -r weft_start && eval "$weft_start"`

// startLine is the line that starts a rank: it exports the variables, changes to the
// directory and becomes the program.
func startLine(dir string, env, argv []string) (string, error) {
	var b strings.Builder
	b.WriteString("export")
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		if !isShellName(name) {
			return "", fmt.Errorf("variable %q: a remote shell can export only names of letters, digits and underscores", name)
		}
		fmt.Fprintf(&b, " %s=%s", name, quote(value))
	}
	fmt.Fprintf(&b, " && cd %s && exec", quote(dir))
	for _, v := range argv {
		b.WriteString(" " + quote(v))
	}
	return b.String(), nil
}

// isShellName reports whether a POSIX shell can export a variable of that name.
func isShellName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// quote makes s one word for the shell that runs remoteScript, on one line.
func quote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "\n", `'"$weft_nl"'`).Replace(s) + "'"
}

// remoteShellFailed is the exit status of ssh when it failed itself.
const remoteShellFailed = 255

// checkProgram returns an error for a program that is not on other hosts.
func (s *spread) checkProgram(path, scratch string) error {
	for _, h := range s.hosts {
		if !h.here() && strings.HasPrefix(path, scratch+string(filepath.Separator)) {
			return fmt.Errorf("a Go package is built on this host only: build it, install it on %s, and give the path of the program there", h.name)
		}
	}
	return nil
}
