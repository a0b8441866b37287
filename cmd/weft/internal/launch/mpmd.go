package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weftstack/weft/internal/cli"
)

// section is one program of a job and how many ranks run it. As with mpiexec, a colon
// begins the next one: weft run -n 1 A : -n 3 B.
type section struct {
	n    int
	wdir string
	path string   // directories to look the program up in
	env  []string // K=V, of this program only
	argv []string // the program and its arguments
}

// sections reads the programs of a job. first is what the flags of the command say of
// the first one; args follow them.
func sections(first section, args []string) ([]section, error) {
	var all []section
	for s := first; ; {
		colon := slices.Index(args, ":")
		s.argv = args
		if colon >= 0 {
			s.argv = args[:colon]
		}
		if len(s.argv) == 0 {
			return nil, errors.New("no program given")
		}
		if s.n < 1 || s.n > MaxRanks {
			return nil, fmt.Errorf("-n %d: want 1 to %d ranks", s.n, MaxRanks)
		}
		all = append(all, s)
		if colon < 0 {
			break
		}
		var err error
		if s, args, err = nextSection(first, args[colon+1:]); err != nil {
			return nil, err
		}
	}
	total := 0
	for _, s := range all {
		total += s.n
	}
	if total > MaxRanks {
		return nil, fmt.Errorf("%d ranks in total: want at most %d", total, MaxRanks)
	}
	return all, nil
}

// nextSection reads the options of a program behind a colon, and returns what follows them.
func nextSection(first section, args []string) (s section, rest []string, err error) {
	s = section{wdir: first.wdir, path: first.path}
	fs := flag.NewFlagSet("weft run", flag.ContinueOnError)
	fs.IntVar(&s.n, "n", 1, "")
	fs.StringVar(&s.wdir, "wdir", first.wdir, "")
	fs.StringVar(&s.path, "path", first.path, "")
	fs.Func("x", "", addVariable(&s.env))
	fs.Func("env", "", addVariable(&s.env))
	if args, err = translate(fs, args); err == nil {
		err = cli.Parse(fs, args, io.Discard)
	}
	if err != nil {
		return s, nil, fmt.Errorf("after a colon: %w (only -n, -wdir, -path, -env and -x are options of one program; put the others before the first program)", err)
	}
	return s, fs.Args(), nil
}

// expandConfig replaces -configfile FILE by what the file has: a program with its options in each
// line, as between colons (MPI-4.1, Section 11.5). # begins a comment line, and a line that ends
// with a backslash goes on in the next.
func expandConfig(args []string) ([]string, error) {
	if len(args) != 2 || strings.TrimPrefix(args[0], "-") != "-configfile" && args[0] != "-configfile" {
		return args, nil
	}
	text, err := readBounded(args[1], maxConfigFile)
	if err != nil {
		return nil, err
	}
	var out []string
	joined := strings.ReplaceAll(strings.ReplaceAll(string(text), "\r", ""), "\\\n", " ")
	for line := range strings.Lines(joined) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(out) > 0 {
			out = append(out, ":")
		}
		out = append(out, words...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no program", args[1])
	}
	return out, nil
}

// maxConfigFile bounds the file of -configfile, in bytes.
const maxConfigFile = 1 << 20

// programs finds or builds what each rank runs, and tells which section it is of. Built
// programs are put into scratch.
func (o *runOptions) programs(ctx context.Context, scratch string) (ranks []rankProgram, apps []int, err error) {
	for i, s := range o.sections {
		if err := o.checkDir(s.wdir); err != nil {
			return nil, nil, err
		}
		dir := filepath.Join(scratch, fmt.Sprint("program-", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, nil, err
		}
		path, err := executable(ctx, dir, s)
		if err != nil {
			return nil, nil, err
		}
		if o.spread != nil {
			if err := o.spread.checkProgram(path, scratch); err != nil {
				return nil, nil, err
			}
		}
		for range s.n {
			ranks, apps = append(ranks, rankProgram{path: path, args: s.argv[1:], dir: s.wdir, env: s.env}), append(apps, i)
		}
	}
	return ranks, apps, nil
}

// checkDir returns an error for a working directory that is not there, unless it may be
// on other hosts.
func (o *runOptions) checkDir(dir string) error {
	if dir == "" || o.spread != nil && !o.spread.allHere() {
		return nil
	}
	st, err := os.Stat(dir)
	if err == nil && !st.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	if err != nil {
		return fmt.Errorf("-wdir: %w", err)
	}
	return nil
}
