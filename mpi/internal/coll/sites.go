package coll

// Sites says which ranks of a communicator are at one site. The way between two sites takes long,
// and their ranks share it: so algorithms for several sites send as little as possible across, at
// the same time if they can, and what the ranks of a site have to tell each other within it.
type Sites struct {
	Of    []int   // number of the site of each rank; sites are numbered by their lowest rank
	Ranks [][]int // of each site, in order
	// Runs is true if the ranks of each site follow one another. Then operands that are combined
	// within the sites, and the results in the order of the sites, keep the order of the ranks.
	Runs bool

	place []int // of each rank among those of its site
}

// NewSites returns the sites of size ranks, from the names of the sites of each.
func NewSites(size int, name func(rank int) string) *Sites {
	t := &Sites{Of: make([]int, size), place: make([]int, size), Runs: true}
	numbers := make(map[string]int)
	for r := range size {
		n, ok := numbers[name(r)]
		if !ok {
			n = len(t.Ranks)
			numbers[name(r)] = n
			t.Ranks = append(t.Ranks, nil)
		}
		t.Runs = t.Runs && n == len(t.Ranks)-1
		t.Of[r], t.place[r] = n, len(t.Ranks[n])
		t.Ranks[n] = append(t.Ranks[n], r)
	}
	return t
}

// A siteComm is the ranks of one site as a communicator, and the schedule of a part of a collective
// on it.
type siteComm struct {
	Schedule
	outer  Comm
	ranks  []int  // of the outer communicator
	layout Layout // memory for a layout of the part
}

// atSite returns a schedule on the ranks of the caller's site, without buffers, whose root is the
// lowest of them. It takes the place of the one that was returned before.
func (s *Schedule) atSite() *siteComm {
	if s.inner == nil {
		s.inner = new(siteComm)
	}
	in, t := s.inner, s.Sites
	in.Release()
	in.outer, in.ranks = s.Comm, t.Ranks[t.Of[s.Rank]]
	in.Comm, in.Rank, in.Size = in, t.place[s.Rank], len(in.ranks)
	in.Op, in.Elem, in.Fused = s.Op, s.Elem, s.Fused
	return in
}

// parts makes the layout of n bytes in almost equal parts, one for each rank.
func (m *siteComm) parts(n int) *Layout {
	l := &m.layout
	l.Counts, l.Displs = l.Counts[:0], l.Displs[:0]
	for i := range m.Size {
		from, to := m.cut(n, i, m.Size), m.cut(n, i+1, m.Size)
		l.Counts, l.Displs = append(l.Counts, to-from), append(l.Displs, from)
	}
	return l
}

// gatherParts gives all ranks all parts of b, of which each has its own: round a ring.
func (m *siteComm) gatherParts(b []byte) error {
	prev, next := (m.Rank-1+m.Size)%m.Size, (m.Rank+1)%m.Size
	for i := range m.Size - 1 {
		out, in := (m.Rank-i+m.Size)%m.Size, (m.Rank-i-1+m.Size)%m.Size
		if err := m.Sendrecv(m.part(b, out, m.Size), next, m.part(b, in, m.Size), prev); err != nil {
			return err
		}
	}
	return nil
}

func (m *siteComm) rank(place int) int {
	if place < 0 {
		return place // ProcNull
	}
	return m.ranks[place]
}

// Send and the others implement Comm.
func (m *siteComm) Send(b []byte, dst int) error      { return m.outer.Send(b, m.rank(dst)) }
func (m *siteComm) Recv(b []byte, src int) error      { return m.outer.Recv(b, m.rank(src)) }
func (m *siteComm) StartSend(b []byte, dst int) error { return m.outer.StartSend(b, m.rank(dst)) }
func (m *siteComm) StartRecv(b []byte, src int) error { return m.outer.StartRecv(b, m.rank(src)) }
func (m *siteComm) Wait() error                       { return m.outer.Wait() }
func (m *siteComm) Copy(dst, src []byte)              { m.outer.Copy(dst, src) }
func (m *siteComm) Combine(acc, a, b []byte)          { m.outer.Combine(acc, a, b) }

func (m *siteComm) StartSendAwaited(b []byte, dst int) error {
	return m.outer.StartSendAwaited(b, m.rank(dst))
}

func (m *siteComm) Sendrecv(sb []byte, dst int, rb []byte, src int) error {
	return m.outer.Sendrecv(sb, m.rank(dst), rb, m.rank(src))
}

func (m *siteComm) SendrecvReduce(sb []byte, dst int, acc, mine []byte, src int, lower bool) error {
	return m.outer.SendrecvReduce(sb, m.rank(dst), acc, mine, m.rank(src), lower)
}

// leader returns the rank that sends and receives for a site: the root if it is there, else the
// lowest.
func (s *Schedule) leader(site int) int {
	if s.Sites.Of[s.Root] == site {
		return s.Root
	}
	return s.Sites.Ranks[site][0]
}

// farSegment is the length in bytes of the messages that longer ones to another site are cut into:
// below the eager limit, so that they cross at once instead of after a rendezvous, which takes
// two more crossings; and short enough for transports to copy, so that no rank waits for their
// acknowledgement.
const farSegment = 64 << 10

// startSendFar and startRecvFar start what sends b to a rank at another site, and receives it.
func (s *Schedule) startSendFar(b []byte, dst int) error {
	for len(b) > farSegment {
		if err := s.StartSendAwaited(b[:farSegment], dst); err != nil {
			return err
		}
		b = b[farSegment:]
	}
	return s.StartSendAwaited(b, dst)
}

func (s *Schedule) startRecvFar(b []byte, src int) error {
	for len(b) > farSegment {
		if err := s.StartRecv(b[:farSegment], src); err != nil {
			return err
		}
		b = b[farSegment:]
	}
	return s.StartRecv(b, src)
}

// startParts starts the crossing of the caller's part of a buffer of total bytes, which is cut in as many
// parts as its site has ranks, to or from the ranks of another site, which have their parts of it: all
// ranks of both sites at the same time, and every byte once. start is startSendFar or startRecvFar.
func (s *Schedule) startParts(start func(s *Schedule, b []byte, peer int) error, part []byte, total, site int) error {
	t := s.Sites
	there := t.Ranks[site]
	begin := s.cut(total, t.place[s.Rank], len(t.Ranks[t.Of[s.Rank]]))
	for j, peer := range there {
		from := max(begin, s.cut(total, j, len(there)))
		to := min(begin+len(part), s.cut(total, j+1, len(there)))
		if from >= to {
			continue
		}
		if err := start(s, part[from-begin:to-begin], peer); err != nil {
			return err
		}
	}
	return nil
}

// Conditions of algorithms.

// maxSites is the number of sites up to which the algorithms for sites serve: each site sends to each
// other one itself.
const maxSites = 16

func severalSites(s *Schedule) bool { return s.Sites != nil && len(s.Sites.Ranks) <= maxSites }

// orderedSites is true if operands can be combined within the sites first.
func orderedSites(s *Schedule) bool {
	return severalSites(s) && (s.Sites.Runs || s.Op.Commutative())
}

func commutingSites(s *Schedule) bool { return severalSites(s) && s.Op.Commutative() }
func runsOfSites(s *Schedule) bool    { return severalSites(s) && s.Sites.Runs }
