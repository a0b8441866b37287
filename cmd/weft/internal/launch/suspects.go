package launch

import (
	"fmt"
	"os"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/internal/pmi"
)

const (
	// suspectPoll is how often the job looks whether it is only waiting for processes
	// that were declared dead, while there are such.
	suspectPoll = 500 * time.Millisecond
	// suspectGrace is how long such a process, which may be about to finalize like the
	// others, has before it is killed.
	suspectGrace = 2 * time.Second
)

// rankReport is what a rank says about another one.
type rankReport struct {
	g    *group // of the rank that says it
	rank int
	pmi.Report
}

// suspicion is what the others say about a process.
type suspicion struct {
	silent map[*proc]bool // processes that wait for its answer
	dead   *proc          // the first that took it for dead; nil: none
	why    string
}

// suspects are the processes that others do not hear from. They belong to the goroutine
// that supervises the job.
type suspects map[*proc]*suspicion

// dead reports whether p was taken for dead.
func (s suspects) dead(p *proc) bool { return s[p] != nil && s[p].dead != nil }

// anyDead reports whether some process was.
func (s suspects) anyDead() bool {
	for _, x := range s {
		if x.dead != nil {
			return true
		}
	}
	return false
}

// heard takes in what one process says about another. It returns a line for people, or
// "" if there is no news in it. Those that were taken for dead are not listened to: they
// do not hear from the others either.
func (s suspects) heard(from, about *proc, state pmi.PeerState, why string) string {
	if s.dead(from) {
		return ""
	}
	x := s[about]
	if x == nil {
		if state == pmi.PeerAnswered {
			return ""
		}
		x = &suspicion{silent: make(map[*proc]bool)}
		s[about] = x
	}
	switch state {
	case pmi.PeerSilent:
		x.silent[from] = true
		if len(x.silent) == 1 && x.dead == nil {
			return fmt.Sprintf("%s does not answer %s: %s", about.ident(), from, why)
		}
	case pmi.PeerAnswered:
		was := len(x.silent)
		if delete(x.silent, from); was > 0 && len(x.silent) == 0 && x.dead == nil {
			delete(s, about)
			return answersAgain(about, from)
		}
	case pmi.PeerDead:
		delete(x.silent, from)
		if x.dead == nil {
			x.dead, x.why = from, why
		}
	}
	return ""
}

// gone forgets a process that has ended, and what it waited for. A process that ends well has exchanged
// messages with all others in MPI_Finalize. If it, or one that it waited for, was last reported as silent,
// gone returns a line which says that it answers again: the job may end before that is reported.
func (s suspects) gone(p *proc, well bool) (lines []string) {
	if x := s[p]; x != nil && well && x.dead == nil {
		for from := range x.silent {
			lines = append(lines, answersAgain(p, from))
			break
		}
	}
	delete(s, p)
	for about, x := range s {
		waited := x.silent[p]
		if delete(x.silent, p); len(x.silent) == 0 && x.dead == nil {
			delete(s, about)
			if waited && well {
				lines = append(lines, answersAgain(about, p))
			}
		}
	}
	return lines
}

func answersAgain(about, from *proc) string {
	return fmt.Sprintf("%s answers %s again", about.ident(), from)
}

// heard takes in what a rank says about another one.
func (j *job) heard(r rankReport) {
	from, about := j.findProc(r.g.server.Name(), r.rank), j.findProc(r.Job, r.Rank)
	if from == nil || about == nil {
		return // it has ended
	}
	if line := j.suspects.heard(from, about, r.State, r.Why); line != "" {
		fmt.Fprintln(os.Stderr, "weft run:", line)
	}
}

// gone forgets a process that has ended, and says what is news about others.
func (j *job) gone(e ended) {
	_, wrong := j.verdict(e)
	for _, line := range j.suspects.gone(e.p, wrong == nil) {
		fmt.Fprintln(os.Stderr, "weft run:", line)
	}
}

// findProc returns the process with a rank in a group if it runs, or nil.
func (j *job) findProc(group string, rank int) *proc {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.procs {
		if p.rank == rank && !p.over && p.g.server.Name() == group {
			return p
		}
	}
	return nil
}

// forsaken returns the processes that were taken for dead, if all others have finalized
// or ended: no rank is left that could hear from them.
func (j *job) forsaken() []*proc {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []*proc
	for _, p := range j.procs {
		switch {
		case p.over || p.g.server.State(p.rank) == pmi.Finalized:
		case !j.suspects.dead(p):
			return nil
		default:
			out = append(out, p)
		}
	}
	return out
}

// killForsaken kills what forsaken returns when it has done so for a while, since the
// time given, and returns since when it does.
func (j *job) killForsaken(since time.Time) time.Time {
	left := j.forsaken()
	if left == nil {
		return time.Time{}
	}
	if since.IsZero() {
		return time.Now()
	}
	if time.Since(since) < suspectGrace {
		return since
	}
	for _, p := range left {
		if x := j.suspects[p]; !p.killed {
			fmt.Fprintf(os.Stderr, "weft run: killing %s: %s declared it failed (%s), and all other ranks have finished\n",
				p.ident(), x.dead, x.why)
			p.killed = true
			process.SignalGroup(p.cmd.Process, os.Kill)
		}
	}
	return since
}
