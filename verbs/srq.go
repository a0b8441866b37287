package verbs

import "github.com/weftstack/weft/ddp"

// SRQConfig holds the parameters of a shared receive queue.
type SRQConfig struct {
	// Depth is the size of the queue (default DefaultDepth, at most
	// MaxSRQDepth).
	Depth int
	// MaxSGE bounds scatter/gather lists (default DefaultSGE, at most MaxSGE).
	MaxSGE int
	// Limit, if not 0, asks for an EventSRQLimit: see SetLimit.
	Limit int
	// Context is a value of the caller's, see SRQ.Context.
	Context any
}

// SRQ is a shared receive queue (ibv_create_srq): receives for any number of queue pairs. A
// message takes a receive when all messages before it on its queue pair have been delivered,
// and completes in the RecvCQ of its queue pair. So an incomplete message occupies at most
// one receive per queue pair, whatever its peer sends.
//
// A message that finds the queue empty waits for [SRQ.PostRecv], and so do the messages
// behind it. Waiting data is copied and counts against the receive buffer of the association
// (sctp.Config.RecvBuffer), which all queue pairs with the same peer share; when it is full,
// the receive window closes. Over TCP the connection is not read meanwhile.
//
// It is safe for concurrent use.
type SRQ struct {
	pd   *PD
	cfg  SRQConfig
	pool *ddp.Pool
	refs refs
}

// NewSRQ makes an empty shared receive queue.
func (pd *PD) NewSRQ(cfg SRQConfig) (*SRQ, error) {
	if cfg.Depth == 0 {
		cfg.Depth = DefaultDepth
	}
	if cfg.MaxSGE == 0 {
		cfg.MaxSGE = DefaultSGE
	}
	for _, err := range []error{checkLimit("SRQ depth", cfg.Depth, 1, MaxSRQDepth),
		checkLimit("MaxSGE", cfg.MaxSGE, 0, MaxSGE), checkLimit("SRQ limit", cfg.Limit, 0, cfg.Depth)} {
		if err != nil {
			return nil, err
		}
	}
	if err := pd.refs.enter(); err != nil {
		return nil, err
	}
	s := &SRQ{pd: pd, cfg: cfg}
	s.pool = ddp.NewPool(cfg.Depth, cfg.MaxSGE, func() { pd.dev.events.push(Event{Type: EventSRQLimit, SRQ: s}) })
	s.pool.SetLimit(cfg.Limit)
	return s, nil
}

// PostRecv appends work requests to the queue: all of them, or none and an error
// (ErrQueueFull, ErrSGL, ErrClosed).
func (s *SRQ) PostRecv(wr ...RecvWR) error {
	if err := s.pd.pinRecvs(wr, s.cfg.MaxSGE); err != nil {
		return err
	}
	if !s.pool.Reserve(len(wr)) {
		unpinRecvs(wr)
		if _, depth, _ := s.pool.Len(); depth == 0 {
			return ErrClosed
		}
		n, depth, _ := s.pool.Len()
		return explain(ErrQueueFull, "shared receive queue is full: %d of %d are posted, %d more are too many", n, depth,
			len(wr))
	}
	for i := range wr {
		wr[i].fill(s.pool.Next())
		s.pool.Post()
	}
	s.pool.Commit()
	return nil
}

// SRQAttr is what Query returns.
type SRQAttr struct {
	// Depth and MaxSGE are the capacities, Limit what SetLimit said, 0 once the
	// event was raised.
	Depth, MaxSGE, Limit int
	// Posted is the number of receives in the queue, without those of
	// incomplete messages, one at most for each queue pair: see
	// QPAttr.RecvQueued.
	Posted int
}

// Query returns the attributes.
func (s *SRQ) Query() SRQAttr {
	n, depth, limit := s.pool.Len()
	return SRQAttr{Depth: depth, MaxSGE: s.cfg.MaxSGE, Limit: limit, Posted: n}
}

// SetLimit asks for one EventSRQLimit when fewer than n receives are left; if
// that is so already, the next message raises it. 0 asks for none.
func (s *SRQ) SetLimit(n int) error {
	if _, depth, _ := s.pool.Len(); n < 0 || n > depth {
		return checkLimit("SRQ limit", n, 0, depth)
	}
	s.pool.SetLimit(n)
	return nil
}

// Resize changes the depth. It returns ErrLimit for a depth that is none or is
// below what is posted.
func (s *SRQ) Resize(depth int) error {
	if err := checkLimit("SRQ depth", depth, 1, MaxSRQDepth); err != nil {
		return err
	}
	if !s.pool.Resize(depth) {
		n, _, _ := s.pool.Len()
		return explain(ErrLimit, "SRQ depth %d: %d receives are posted", depth, n)
	}
	return nil
}

// Context returns SRQConfig.Context.
func (s *SRQ) Context() any { return s.cfg.Context }

// PD returns the protection domain.
func (s *SRQ) PD() *PD { return s.pd }

// Close frees the queue (ibv_destroy_srq) and the posted receives, without completions. It
// returns ErrBusy while queue pairs use it.
func (s *SRQ) Close() error {
	if err := s.refs.close("shared receive queue", "queue pairs"); err != nil {
		return err
	}
	s.pool.Close()
	s.pd.dev.events.forget(nil, nil, s)
	s.pd.refs.leave()
	return nil
}
