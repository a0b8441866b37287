package sites

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/weftstack/weft/sctp"
)

// Variables of the environment by which processes learn of sites.
const (
	// EnvFile names a sites file, for processes that another process manager starts.
	EnvFile = "WEFT_SITES"
	// EnvClass names the class of the job, and EnvMode its mode if that is not the one of the file, for such processes.
	EnvClass = "WEFT_JOB_CLASS"
	EnvMode  = "WEFT_SITE_MODE"
	// EnvProcess has a Process in its encoded form, from a launcher that knows sites. It holds a secret: it must not
	// appear on a command line.
	EnvProcess = "WEFT_SITE_PROCESS"
)

// Process is what a process has to know to be reached, and to reach others, through gateways.
type Process struct {
	// Site, Node and Process are its address.
	Site, Node, Process uint16
	// Job is the number of the job, Key its key.
	Job uint32
	Key []byte
	// Mode tells when sends complete.
	Mode Mode
	// Gateways are those of the site in the order of their numbers, from 1. There are none if there is one site only.
	Gateways []sctp.Addr
	// Names are the names of all sites by number.
	Names map[uint16]string
}

// ProcessAt returns what the process at place p of a job has to know. process is its number if p has none, and key
// that of the job.
func (f *File) ProcessAt(p Place, process uint16, job uint32, key []byte) *Process {
	if p.Process != 0 {
		process = p.Process
	}
	out := &Process{
		Site: p.Site.Number, Node: p.Node, Process: process, Job: job, Key: slices.Clone(key), Mode: f.Mode,
		Names: make(map[uint16]string),
	}
	for _, s := range f.Sites {
		out.Names[s.Number] = s.Name
	}
	if len(f.Sites) > 1 {
		for _, g := range p.Site.Gateways {
			out.Gateways = append(out.Gateways, g.LANAddr())
		}
	}
	return out
}

// ForJob returns f as a job sees it that is started with a class and a mode; either may be empty.
func (f *File) ForJob(class, mode string) (*File, *Class, error) {
	var c *Class
	if class != "" {
		if c = f.Class(class); c == nil {
			return nil, nil, fmt.Errorf("%s: there is no job-class %q", f.Name, class)
		}
	}
	if mode == "" {
		return f, c, nil
	}
	if !Mode(mode).valid() {
		return nil, nil, fmt.Errorf("mode %q: want piecewise, chained or lossy", mode)
	}
	g := *f
	g.Mode = Mode(mode)
	return &g, c, nil
}

// ProcessFromEnv returns what a process has to know that another process manager has started, by the sites file
// that the environment names; nil if it names none. name is the name of the job for its process manager; see
// ProcessOf for the rest. Of a launcher that knows sites the environment has a Process already; that has to be looked
// for first.
func ProcessFromEnv(getenv func(string) string, name, host string, rank, localRank int) (*Process, error) {
	file := getenv(EnvFile)
	if file == "" {
		return nil, nil
	}
	f, err := Read(file)
	if err != nil {
		return nil, err
	}
	f, c, err := f.ForJob(getenv(EnvClass), getenv(EnvMode))
	if err != nil {
		return nil, err
	}
	return f.ProcessOf(host, rank, localRank, f.NamedJob(name, c))
}

// ProcessOf returns what a process has to know that another process manager has started: it runs on host, has a
// rank, and localRank is its number among those of the host, from 0. It reads the key for jobs if there are
// gateways.
func (f *File) ProcessOf(host string, rank, localRank int, job uint32) (*Process, error) {
	p, err := f.Place(host, rank)
	if err != nil {
		return nil, err
	}
	if localRank < 0 || localRank > MaxRank {
		return nil, fmt.Errorf("%s: process %d of host %q: want 0 to %d", f.Name, localRank, host, MaxRank)
	}
	var key []byte
	if len(f.Sites) > 1 {
		if key, err = f.JobsKey(); err != nil {
			return nil, err
		}
		key = JobKey(key, job)
	}
	return f.ProcessAt(p, uint16(localRank+1), job, key), nil
}

// encoded is a Process as JSON.
type encoded struct {
	Site     uint16            `json:"site"`
	Node     uint16            `json:"node"`
	Process  uint16            `json:"process"`
	Job      uint32            `json:"job"`
	Key      string            `json:"key"`
	Mode     Mode              `json:"mode"`
	Gateways []string          `json:"gateways"`
	Names    map[uint16]string `json:"names"`
}

// Encode returns p as one line of text, the value of EnvProcess. It holds the key.
func (p *Process) Encode() string {
	e := encoded{
		Site: p.Site, Node: p.Node, Process: p.Process, Job: p.Job, Key: hex.EncodeToString(p.Key),
		Mode: p.Mode, Names: p.Names,
	}
	for _, g := range p.Gateways {
		e.Gateways = append(e.Gateways, g.String())
	}
	b, _ := json.Marshal(&e) // never fails: numbers and strings
	return string(b)
}

// DecodeProcess reads what Encode has written. Its errors do not show the text, which holds a key.
func DecodeProcess(s string) (*Process, error) {
	var e encoded
	if err := json.Unmarshal([]byte(s), &e); err != nil {
		return nil, errors.New(EnvProcess + " is not what the launcher of this version writes")
	}
	p := &Process{Site: e.Site, Node: e.Node, Process: e.Process, Job: e.Job, Mode: e.Mode, Names: e.Names}
	var err error
	if p.Key, err = hex.DecodeString(e.Key); err != nil {
		return nil, errors.New(EnvProcess + ": the key is not hexadecimal")
	}
	for _, g := range e.Gateways {
		a, err := sctp.ParseAddr(g)
		if err != nil {
			return nil, fmt.Errorf("%s: gateway: %w", EnvProcess, err)
		}
		p.Gateways = append(p.Gateways, a)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", EnvProcess, err)
	}
	return p, nil
}

func (p *Process) check() error {
	switch {
	case p.Site == 0 || p.Node == 0 || p.Process == 0:
		return fmt.Errorf("address %d/%d/%d: numbers begin with 1", p.Site, p.Node, p.Process)
	case p.Names[p.Site] == "":
		return fmt.Errorf("site %d has no name", p.Site)
	case !p.Mode.valid():
		return fmt.Errorf("mode %q: want piecewise, chained or lossy", p.Mode)
	case len(p.Gateways) > MaxGateways:
		return fmt.Errorf("%d gateways, want at most %d", len(p.Gateways), MaxGateways)
	case len(p.Gateways) == 0:
		return nil
	case p.Job == 0 || p.Job > MaxJob:
		return fmt.Errorf("job %d, want 1 to %d", p.Job, MaxJob)
	case len(p.Key) < MinKey:
		return fmt.Errorf("key of %d bytes, want at least %d", len(p.Key), MinKey)
	}
	return nil
}
