package launch

import (
	"fmt"
	"os"
	"sync"

	"github.com/weftstack/weft/internal/sites"
)

// siteJob gives the processes of a job their places in the sites of a sites file.
type siteJob struct {
	file  *sites.File
	job   uint32
	key   []byte // of the job; nil if there is one site, so no gateway
	here  string // name of this host
	ranks int    // that the job begins with

	mu      sync.Mutex
	spawned int // processes since
	nodes   map[siteNode]*numbers
}

// siteNode names a node.
type siteNode struct{ site, node uint16 }

// numbers are the numbers of the processes of a node. A number is used again as late as possible.
type numbers struct {
	last uint16
	used map[uint16]bool
}

// newSiteJob makes the number and the key of a job with n ranks in a class and a mode, which may be empty.
func newSiteJob(f *sites.File, class, mode string, n int) (*siteJob, error) {
	f, c, err := f.ForJob(class, mode)
	if err != nil {
		return nil, err
	}
	s := &siteJob{file: f, job: f.NewJob(c), ranks: n, nodes: make(map[siteNode]*numbers)}
	if len(f.Sites) > 1 {
		key, err := f.JobsKey()
		if err != nil {
			return nil, err
		}
		s.key = sites.JobKey(key, s.job)
	}
	if s.here, err = os.Hostname(); err != nil {
		return nil, err
	}
	return s, nil
}

// place returns where a process runs. host is "" for this one. spawned tells that it is not one of those that the job
// begins with: where the file gives sites to ranks, those that are spawned have the sites of the first ones by turns.
func (s *siteJob) place(host string, rank int, spawned bool) (*sites.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if host == "" {
		host = s.here
	}
	if spawned {
		rank = s.spawned % max(1, s.ranks)
	}
	p, err := s.file.Place(host, rank)
	if err != nil {
		return nil, err
	}
	at := siteNode{p.Site.Number, p.Node}
	n := s.nodes[at]
	if n == nil {
		n = &numbers{used: make(map[uint16]bool)}
		s.nodes[at] = n
	}
	if p.Process, err = n.next(); err != nil {
		return nil, fmt.Errorf("site %s, node %d: %w", p.Site.Name, p.Node, err)
	}
	if spawned {
		s.spawned++
	}
	return s.file.ProcessAt(p, 0, s.job, s.key), nil
}

// release gives the number of a process that has ended to others. It may be nil.
func (s *siteJob) release(p *sites.Process) {
	if s == nil || p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes[siteNode{p.Site, p.Node}].used, p.Process)
}

// next returns a free number.
func (n *numbers) next() (uint16, error) {
	if len(n.used) >= sites.MaxRank {
		return 0, fmt.Errorf("more than %d processes", sites.MaxRank)
	}
	for {
		if n.last++; n.last > sites.MaxRank {
			n.last = 1
		}
		if !n.used[n.last] {
			n.used[n.last] = true
			return n.last, nil
		}
	}
}

// hostName returns the name by which a sites file has the host of a rank, or "" if that is this one.
func (g *group) hostName(rank int) string {
	if s := g.spread; s != nil {
		if h := s.hosts[s.place[rank]]; !h.here() {
			return h.name
		}
	}
	return ""
}

// siteEnv returns what tells a process its place, which holds a secret, and notes the place.
func (j *job) siteEnv(p *proc) ([]string, error) {
	if j.sites == nil {
		if os.Getenv(sites.EnvProcess) != "" {
			return []string{sites.EnvProcess + "="}, nil // that of another job
		}
		return nil, nil
	}
	host := p.g.hostName(p.rank)
	if j.hostName != nil {
		if host = j.hostName(p.host); host == "" {
			return nil, nil // not a process of a site
		}
	}
	var err error
	if p.site, err = j.sites.place(host, p.rank, p.g.index > 0); err != nil {
		return nil, err
	}
	return []string{sites.EnvProcess + "=" + p.site.Encode()}, nil
}

// loopbackOnly reports whether all gateways are on this host only.
func (s *siteJob) loopbackOnly() bool {
	if s == nil {
		return true
	}
	for _, x := range s.file.Sites {
		for _, g := range x.Gateways {
			for _, a := range g.LAN {
				if !a.Addr().IsLoopback() {
					return false
				}
			}
		}
	}
	return true
}

// openSites reads the sites file of the flags, if there is one.
func (o *runOptions) openSites() (*siteJob, error) {
	if o.sites == "" {
		return nil, nil
	}
	f, err := sites.Read(o.sites)
	if err != nil {
		return nil, err
	}
	return newSiteJob(f, o.class, o.mode, o.n)
}
