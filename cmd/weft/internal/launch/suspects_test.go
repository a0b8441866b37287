package launch

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/pmi"
)

// suspectJob is a job whose ranks have not been started.
func suspectJob(n int) (*job, []*proc) {
	j := &job{suspects: make(suspects)}
	g := &group{n: n, server: pmi.NewServer(n, "kvs")}
	for rank := range n {
		p := &proc{g: g, rank: rank, cmd: &exec.Cmd{}}
		p.cmd.Process = new(exec.Cmd).Process
		j.procs = append(j.procs, p)
	}
	return j, j.procs
}

// Several ranks that do not hear from one are one line, and so are those that do again.
func TestSuspectsSayItOnce(t *testing.T) {
	s := make(suspects)
	_, p := suspectJob(4)
	for _, x := range p {
		x.g.spread = &spread{hosts: []host{{name: "far"}}, place: make([]int, 4)}
	}
	for i, step := range []struct {
		from, about int
		state       pmi.PeerState
		want        string
	}{
		{0, 1, pmi.PeerSilent, "rank 1 on host far does not answer rank 0: why"},
		{2, 1, pmi.PeerSilent, ""},
		{0, 1, pmi.PeerSilent, ""},
		{0, 1, pmi.PeerAnswered, ""},
		{3, 1, pmi.PeerAnswered, ""}, // it had said nothing
		{2, 1, pmi.PeerAnswered, "rank 1 on host far answers rank 2 again"},
		{2, 1, pmi.PeerAnswered, ""},
		{2, 1, pmi.PeerSilent, "rank 1 on host far does not answer rank 2: why"},
		{2, 1, pmi.PeerDead, ""},
		{1, 2, pmi.PeerSilent, ""}, // nor does it hear from others
		{1, 2, pmi.PeerDead, ""},
		{0, 1, pmi.PeerSilent, ""},
	} {
		if got := s.heard(p[step.from], p[step.about], step.state, "why"); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	if !s.dead(p[1]) || s.dead(p[2]) {
		t.Errorf("dead: rank 1 %v, rank 2 %v; want the first only", s.dead(p[1]), s.dead(p[2]))
	}
	s.gone(p[1], false)
	s.heard(p[3], p[0], pmi.PeerSilent, "")
	s.gone(p[3], false)
	if len(s) > 0 {
		t.Errorf("%d suspects are left after they, or those that waited for them, have ended", len(s))
	}
}

// Processes that end well have heard from each other, whatever they had time to say.
func TestSuspectsThatEndWellAnswer(t *testing.T) {
	const again = "rank 1 on host far answers rank 0 again"
	for _, tt := range []struct {
		ends []int
		well bool
		want string
	}{
		{[]int{1, 0, 2}, true, again},
		{[]int{0, 2, 1}, true, "rank 1 on host far answers rank 2 again"},
		{[]int{1, 0, 2}, false, ""},
		{[]int{0, 2, 1}, false, ""},
	} {
		s := make(suspects)
		_, p := suspectJob(3)
		p[0].g.spread = &spread{hosts: []host{{name: "far"}}, place: make([]int, 3)}
		s.heard(p[0], p[1], pmi.PeerSilent, "")
		if tt.ends[0] == 0 {
			s.heard(p[2], p[1], pmi.PeerSilent, "")
		}
		var said []string
		for _, rank := range tt.ends {
			said = append(said, s.gone(p[rank], tt.well)...)
		}
		if got := strings.Join(said, "; "); got != tt.want {
			t.Errorf("ranks %v end, well: %v: %q, want %q", tt.ends, tt.well, got, tt.want)
		}
		if len(s) > 0 {
			t.Errorf("ranks %v end, well: %v: %d are left", tt.ends, tt.well, len(s))
		}
	}
}

// A process that was taken for dead is killed when only such are left.
func TestForsaken(t *testing.T) {
	j, p := suspectJob(3)
	if got := j.forsaken(); got != nil {
		t.Errorf("at the start %v, want none", got)
	}
	j.suspects.heard(p[0], p[2], pmi.PeerDead, "")
	p[1].over = true
	if got := j.forsaken(); got != nil {
		t.Errorf("while rank 0 goes on %v, want none", got)
	}
	p[0].over = true
	if got := j.forsaken(); len(got) != 1 || got[0] != p[2] {
		t.Errorf("after the others %v, want rank 2", got)
	}
	p[2].over = true
	if got := j.forsaken(); got != nil {
		t.Errorf("at the end %v, want none", got)
	}
}
