package launch

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weftstack/weft/internal/pmi"
)

// This file says what a job waits for that does not end.

const (
	// blockedTime is how long ranks have to say what they wait for: one that is
	// stopped does not answer.
	blockedTime = 2 * time.Second
	// maxStacksFile bounds what is taken over of the stacks of one rank, in bytes.
	maxStacksFile = 1 << 20
)

// blocked prints a line for each rank, what it waits for, and writes the stacks of all
// goroutines to a file. It takes blockedTime at most.
func (j *job) blocked() {
	j.mu.Lock()
	groups := append([]*group(nil), j.groups...)
	j.mu.Unlock()
	ctx, cancel := context.WithTimeout(j.serving, blockedTime)
	defer cancel()
	var stacks []string // files
	for _, g := range groups {
		lines := make([]string, g.n)
		var wg sync.WaitGroup
		for rank := range g.n {
			p := &proc{g: g, rank: rank}
			file := ""
			if j.scratch != "" && p.remote() == "" {
				file = rankSet{g.index, g.n}.file(j.scratch, "stacks", rank)
				stacks = append(stacks, file)
			}
			wg.Go(func() { lines[rank] = fmt.Sprintf("%s %s", p, whyBlocked(ctx, g.server, rank, file)) })
		}
		wg.Wait()
		for _, l := range lines {
			fmt.Fprintln(os.Stderr, "weft run:", l)
		}
	}
	if name, err := mergeStacks(stacks); err != nil {
		fmt.Fprintln(os.Stderr, "weft run: goroutine stacks of the ranks:", err)
	} else if name != "" {
		fmt.Fprintln(os.Stderr, "weft run: the goroutine stacks of the ranks are in", name)
	}
}

// whyBlocked says what a rank waits for.
func whyBlocked(ctx context.Context, s *pmi.Server, rank int, stacksTo string) string {
	switch s.State(rank) {
	case pmi.Absent:
		return "has not joined the job: it has not called MPI_Init (mpi.Init), or is in it"
	case pmi.Finalized:
		return "has finalized"
	}
	text, ok := s.Blocked(ctx, rank, stacksTo)
	if !ok {
		return "does not answer"
	}
	return text
}

// mergeStacks joins the files of the ranks, each under its name, in a new file. It returns
// the name of that file, or "" if there are none to join.
func mergeStacks(files []string) (string, error) {
	var out *os.File
	for _, name := range files {
		text, err := readBounded(name, maxStacksFile)
		if err != nil {
			continue // it did not answer
		}
		if out == nil {
			if out, err = os.CreateTemp("", "weft-stacks-*.txt"); err != nil {
				return "", err
			}
			defer out.Close()
		}
		label := strings.TrimSuffix(filepath.Base(name), ".stacks")
		if _, err := io.WriteString(out, "== "+label+"\n\n"+string(text)+"\n"); err != nil {
			return out.Name(), err
		}
	}
	if out == nil {
		return "", nil
	}
	return out.Name(), nil
}
