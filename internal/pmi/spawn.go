package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Limits of what a rank may ask a launcher to start.
const (
	// MaxSpawn bounds the processes of one request.
	MaxSpawn = 1024
	// MaxCommands bounds the commands of one request.
	MaxCommands = 64
	// MaxArgs bounds the arguments, and the hints, of one command.
	MaxArgs = 1024
	// MaxArg bounds the length of an argument, a hint or a path, in bytes.
	MaxArg = 4 << 10
)

// EnvSpawned is set to 1 for ranks that another job has spawned.
const EnvSpawned = "PMI_SPAWNED"

// encodedKey marks lines whose values are encoded: `weft run` understands
// those, and so takes values with spaces and newlines.
const encodedKey = "weft_encoded"

// ErrRefused is wrapped by the errors of requests that the launcher did not
// grant.
var ErrRefused = errors.New("pmi: launcher refused")

// Command is what some of the processes of a Spawn run.
type Command struct {
	Path string
	Args []string // without the name
	N    int      // processes
	Info map[string]string
}

// Spawn is a request to start a group of processes, which have ranks of their
// own, those of the first command first.
type Spawn struct {
	Commands []Command
	// Preput are values for the key-value space of the new processes.
	Preput map[string]string
}

// Spawned is what became of a Spawn.
type Spawned struct {
	Job  string  // the name of their key-value space, if the launcher tells
	Errs []error // by process; all nil if they were started
}

// Err returns the first error, or nil.
func (s *Spawned) Err() error {
	for _, err := range s.Errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Check returns why a launcher does not take the request, or nil.
func (s *Spawn) Check() error {
	n := 0
	if len(s.Commands) == 0 || len(s.Commands) > MaxCommands {
		return fmt.Errorf("pmi: %d commands to spawn, want 1 to %d", len(s.Commands), MaxCommands)
	}
	for _, c := range s.Commands {
		if c.N < 1 || c.N > MaxSpawn || n+c.N > MaxSpawn {
			return fmt.Errorf("pmi: spawning %d and %d processes, more than %d, or none", n, c.N, MaxSpawn)
		}
		n += c.N
		if c.Path == "" {
			return errors.New("pmi: no command to spawn")
		}
		if len(c.Args) > MaxArgs || len(c.Info) > MaxArgs {
			return fmt.Errorf("pmi: %d arguments and %d hints, more than %d", len(c.Args), len(c.Info), MaxArgs)
		}
		long := func(s string) bool { return len(s) > MaxArg || strings.Contains(s, "\x00") }
		if long(c.Path) || slices.ContainsFunc(c.Args, long) {
			return fmt.Errorf("pmi: an argument is longer than %d bytes, or has a zero byte", MaxArg)
		}
		for k, v := range c.Info {
			if k == "" || long(k) || long(v) {
				return fmt.Errorf("pmi: a hint is longer than %d bytes, or has no name", MaxArg)
			}
		}
	}
	return nil
}

// Size returns the number of processes.
func (s *Spawn) Size() int {
	n := 0
	for _, c := range s.Commands {
		n += c.N
	}
	return n
}

// InfoSoft is the hint by which fewer processes than asked for will do: a list
// of numbers and ranges first:last or first:last:stride (MPI-4.1, Section
// 11.8.2).
const InfoSoft = "soft"

// Soft returns how many processes to start if n are wanted and there is room for
// some: n without the hint, which then may be too many.
func Soft(soft string, n, room int) (int, error) {
	if soft == "" {
		return n, nil
	}
	best := -1
	for item := range strings.SplitSeq(soft, ",") {
		var v [3]int
		parts := strings.Split(strings.TrimSpace(item), ":")
		for i, p := range parts {
			x, err := strconv.Atoi(p)
			if err != nil || len(parts) > 3 || x < 0 && i < 2 {
				return 0, fmt.Errorf("pmi: %s=%q is not a list of numbers", InfoSoft, clip(soft))
			}
			v[i] = x
		}
		first, last, stride := v[0], v[1], v[2]
		switch len(parts) {
		case 1:
			last, stride = first, 1
		case 2:
			stride = 1
		}
		if stride == 0 {
			return 0, fmt.Errorf("pmi: %s=%q: stride 0", InfoSoft, clip(soft))
		}
		if stride < 0 { // count upwards
			k := (first - last) / -stride
			if first < last {
				continue
			}
			first, last, stride = first+k*stride, first, -stride
		}
		if top := min(last, n, room); first <= top {
			best = max(best, first+(top-first)/stride*stride)
		}
	}
	if best < 1 {
		return 0, fmt.Errorf("pmi: no number of %s=%q can be started: %d wanted, room for %d", InfoSoft, clip(soft), n, room)
	}
	return best, nil
}

// Spawn asks the launcher to start processes, and returns when they have been, or
// could not be, started. It does not wait for what they do.
func (c *Client) Spawn(ctx context.Context, s *Spawn) (*Spawned, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	var b strings.Builder
	for i, cmd := range s.Commands {
		text := func(v string) (string, error) {
			if c.extended {
				return valueCode.EncodeToString([]byte(v)), nil
			}
			if strings.ContainsAny(v, "\n\r") {
				return "", fmt.Errorf("%w: newline in %q", ErrRefused, clip(v))
			}
			return v, nil
		}
		var err error
		line := func(key, value string) {
			if err == nil {
				var v string
				if v, err = text(value); err == nil {
					fmt.Fprintf(&b, "%s=%s\n", key, v)
				}
			}
		}
		b.WriteString("mcmd=spawn\n")
		if c.extended {
			b.WriteString(encodedKey + "=1\n")
		}
		fmt.Fprintf(&b, "nprocs=%d\n", cmd.N)
		line("execname", cmd.Path)
		fmt.Fprintf(&b, "totspawns=%d\nspawnssofar=%d\n", len(s.Commands), i+1)
		for k, a := range cmd.Args {
			line("arg"+strconv.Itoa(k+1), a)
		}
		fmt.Fprintf(&b, "argcnt=%d\n", len(cmd.Args))
		var put [][2]string
		for _, k := range slices.Sorted(maps.Keys(s.Preput)) {
			parts, err := encodeValue(s.Preput[k], c.valueMax)
			if err != nil {
				return nil, err
			}
			for i, p := range parts {
				put = append(put, [2]string{partKey(k, i), p})
			}
		}
		fmt.Fprintf(&b, "preput_num=%d\n", len(put))
		for k, kv := range put {
			line("preput_key_"+strconv.Itoa(k), kv[0])
			line("preput_val_"+strconv.Itoa(k), kv[1])
		}
		fmt.Fprintf(&b, "info_num=%d\n", len(cmd.Info))
		for k, key := range slices.Sorted(maps.Keys(cmd.Info)) {
			line("info_key_"+strconv.Itoa(k), key)
			line("info_val_"+strconv.Itoa(k), cmd.Info[key])
		}
		if err != nil {
			return nil, err
		}
		b.WriteString("endcmd\n")
	}
	m, err := c.call(ctx, strings.TrimSuffix(b.String(), "\n"), "spawn_result")
	if err != nil && m.cmd == "" {
		return nil, err
	}
	return m.spawned(s.Size(), err), nil
}

// spawned reads the reply to a Spawn of n processes.
func (m message) spawned(n int, refused error) *Spawned {
	out := &Spawned{Job: m.args["weft_job"]}
	codes := strings.Split(m.args["errcodes"], ",")
	why := refused
	if text := m.args[textKey]; text != "" {
		why = fmt.Errorf("%w: %s", ErrRefused, text)
	}
	if why == nil && m.args["errcodes"] != "" {
		n = min(n, len(codes)) // with the hint soft it may be fewer
	}
	out.Errs = make([]error, n)
	for i := range out.Errs {
		code := "0"
		if i < len(codes) && codes[i] != "" {
			code = codes[i]
		} else if refused != nil {
			code = "1"
		}
		if code != "0" {
			if out.Errs[i] = why; why == nil {
				out.Errs[i] = fmt.Errorf("%w: error code %s", ErrRefused, clip(code))
			}
		}
	}
	if out.Err() == nil && refused != nil && n > 0 {
		out.Errs[0] = why
	}
	return out
}

// readSpawn reads what follows the first line of a Spawn, up to the end of its
// last command. Values for the new key-value space are as they came, encoded.
func readSpawn(r *bufio.Reader) (*Spawn, error) {
	s := &Spawn{Preput: make(map[string]string)}
	room := maxSpawnBytes
	for {
		total, so, err := s.readCommand(r, &room)
		if err != nil {
			return nil, err
		}
		if so != len(s.Commands) || total < so || total > MaxCommands {
			return nil, fmt.Errorf("%w: command %d of %d to spawn", ErrProtocol, so, total)
		}
		if so == total {
			return s, nil
		}
		line, err := readLine(r)
		if err != nil {
			return nil, err
		}
		if m, err := parseMessage(line); err != nil || m.cmd != "spawn" {
			return nil, fmt.Errorf("%w: %q instead of the next command to spawn", ErrProtocol, clip(line))
		}
	}
}

// maxSpawnLines bounds the lines that describe one command.
const maxSpawnLines = 5*MaxArgs + 64

// maxSpawnBytes bounds the lines of one request.
const maxSpawnBytes = 8 << 20

// readCommand reads one command, up to its endcmd.
func (s *Spawn) readCommand(r *bufio.Reader, room *int) (total, so int, err error) {
	v := make(map[string]string)
	for {
		line, err := readLine(r)
		if err != nil {
			return 0, 0, err
		}
		if line == "endcmd" {
			break
		}
		if *room -= len(line) + 1; *room < 0 {
			return 0, 0, fmt.Errorf("%w: more than %d bytes of commands to spawn", ErrProtocol, maxSpawnBytes)
		}
		key, value, ok := strings.Cut(line, "=")
		if _, dup := v[key]; !ok || key == "" || dup || len(v) == maxSpawnLines {
			return 0, 0, fmt.Errorf("%w: %q in a command to spawn", ErrProtocol, clip(line))
		}
		v[key] = value
	}
	var bad error
	text := func(key string) string {
		value, ok := v[key]
		if !ok {
			bad = fmt.Errorf("%w: a command to spawn has no %s", ErrProtocol, key)
		}
		if v[encodedKey] == "" {
			return value
		}
		b, err := valueCode.DecodeString(value)
		if err != nil {
			bad = fmt.Errorf("%w: %s of a command to spawn: %w", ErrProtocol, key, err)
		}
		return string(b)
	}
	number := func(key string, most int) int {
		n, err := strconv.Atoi(v[key])
		if v[key] == "" {
			n, err = 0, nil
		}
		if err != nil || n < 0 || n > most {
			bad = fmt.Errorf("%w: %s=%s of a command to spawn", ErrProtocol, key, clip(v[key]))
			return 0
		}
		return n
	}
	c := Command{Path: text("execname"), N: number("nprocs", MaxSpawn)}
	for i := range number("argcnt", MaxArgs) {
		c.Args = append(c.Args, text("arg"+strconv.Itoa(i+1)))
	}
	for i := range number("preput_num", MaxArgs) {
		n := strconv.Itoa(i)
		s.Preput[text("preput_key_"+n)] = text("preput_val_" + n)
	}
	if n := number("info_num", MaxArgs); n > 0 {
		c.Info = make(map[string]string, n)
		for i := range n {
			n := strconv.Itoa(i)
			c.Info[text("info_key_"+n)] = text("info_val_" + n)
		}
	}
	s.Commands = append(s.Commands, c)
	total, so = number("totspawns", MaxCommands), number("spawnssofar", MaxCommands)
	return total, so, bad
}

// spawn answers the request that begins on r.
func (s *Server) spawn(rank int, r *bufio.Reader) (string, error) {
	req, err := readSpawn(r)
	if err != nil {
		return "", err
	}
	var out *Spawned
	if err = req.Check(); err == nil && s.OnSpawn == nil {
		err = errors.New("this launcher does not spawn processes here")
	}
	if err == nil {
		out, err = s.OnSpawn(rank, req)
	}
	if err != nil {
		return "cmd=spawn_result rc=-1 " + textKey + "=" + oneLine(err.Error()), nil
	}
	codes := make([]string, len(out.Errs))
	for i, err := range out.Errs {
		codes[i] = "0"
		if err != nil {
			codes[i] = "1"
		}
	}
	reply := "cmd=spawn_result rc=0 errcodes=" + strings.Join(codes, ",")
	if err := out.Err(); err != nil {
		return reply + " " + textKey + "=" + oneLine(err.Error()), nil
	}
	return reply + " weft_job=" + out.Job, nil
}

// Preput stores what a Spawn brought, as it came.
func (s *Server) Preput(values map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if err := s.put(s.name, k, values[k]); err != nil {
			return fmt.Errorf("%w: %q: %w", ErrProtocol, clip(k), err)
		}
	}
	return nil
}

// maxOthers bounds the deaths in other groups that ranks are told of which watch
// later.
const maxOthers = 4096

// FailOther tells the ranks that watch of a death in another group of the job.
func (s *Server) FailOther(name string, rank int, why string) {
	line := fmt.Sprintf("cmd=%s rank=%d weft_job=%s %s=%s", cmdFailed, rank, name, textKey, oneLine(why))
	s.mu.Lock()
	to := slices.Collect(maps.Values(s.watches))
	if len(s.others) < maxOthers {
		s.others = append(s.others, line)
	}
	s.mu.Unlock()
	for _, w := range to {
		go func() { _ = w.line(line) }() // a rank that does not read holds up nobody
	}
}

// AppNum returns which of the commands of a Spawn this rank runs.
func (c *Client) AppNum(ctx context.Context) (int, error) {
	m, err := c.call(ctx, "cmd=get_appnum", "appnum")
	if err != nil {
		return 0, err
	}
	return m.number("appnum")
}

// UniverseSize returns how many processes the launcher has room for.
func (c *Client) UniverseSize(ctx context.Context) (int, error) {
	m, err := c.call(ctx, "cmd=get_universe_size", "universe_size")
	if err != nil {
		return 0, err
	}
	return m.number("size")
}

// ProcessName is what Client.OnOther calls this process to those of other
// groups: empty if the launcher does not tell.
func (c *Client) ProcessName() string {
	if !c.extended {
		return ""
	}
	return ProcessName(c.kvs, c.Rank)
}

// ProcessName names a rank of the group with a key-value space.
func ProcessName(job string, rank int) string { return job + "/" + strconv.Itoa(rank) }

// ParseProcessName takes what ProcessName returned apart.
func ParseProcessName(name string) (job string, rank int, ok bool) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "", 0, false
	}
	rank, err := strconv.Atoi(name[i+1:])
	return name[:i], rank, err == nil
}

// readLine reads one line without its newline.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", fmt.Errorf("%w: line longer than %d bytes", ErrProtocol, MaxLine)
	}
	if err != nil {
		if errors.Is(err, io.EOF) && len(line) > 0 {
			return "", io.ErrUnexpectedEOF
		}
		return "", err
	}
	return strings.TrimRight(string(line[:len(line)-1]), "\r"), nil
}
