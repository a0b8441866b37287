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

	"github.com/weftstack/weft/internal/cli"
)

// section is one program of a job and how many ranks run it. As with mpiexec, a colon
// begins the next one: weft run -n 1 A : -n 3 B.
type section struct {
	n    int
	wdir string
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
		s = section{wdir: first.wdir}
		fs := flag.NewFlagSet("weft run", flag.ContinueOnError)
		fs.IntVar(&s.n, "n", 1, "")
		fs.IntVar(&s.n, "np", 1, "")
		fs.StringVar(&s.wdir, "wdir", first.wdir, "")
		if err := cli.Parse(fs, args[colon+1:], io.Discard); err != nil {
			return nil, fmt.Errorf("after a colon: %w (only -n, -np and -wdir are flags of one program; put the others before the first program)", err)
		}
		args = fs.Args()
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
		path, err := executable(ctx, dir, s.argv[0])
		if err != nil {
			return nil, nil, err
		}
		if o.spread != nil {
			if err := o.spread.checkProgram(path, scratch); err != nil {
				return nil, nil, err
			}
		}
		for range s.n {
			ranks, apps = append(ranks, rankProgram{path: path, args: s.argv[1:], dir: s.wdir}), append(apps, i)
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
