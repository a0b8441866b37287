package ddp

// Source is memory that a peer reads, found by [Table.Source]. It is in use until
// [Source.Done].
type Source struct {
	// Mem is the memory.
	Mem []byte
	// Snapshot tells that the region has ReadSnapshot.
	Snapshot bool

	region *Region
	parent *Region // what region was bound to; may be nil
	epoch  uint32
}

// Source returns the n bytes at to of the region named by stag, which the peer of
// stream sc may read until the source is revoked.
func (t *Table) Source(sc *Scope, stag uint32, to uint64, n uint32) (s Source, d Denial) {
	r := t.Lookup(stag)
	if r == nil {
		return s, DeniedSTag
	}
	s.epoch = r.Epoch() // before enter: a revocation in between must show
	if !r.enter() {
		return s, DeniedSTag
	}
	defer r.leave()
	if d := r.check(sc, to, n, RemoteRead); d != Granted {
		return s, d
	}
	off := to - r.base
	s.Mem, s.region, s.parent = r.mem[off:off+uint64(n):off+uint64(n)], r, r.parent
	s.Snapshot = r.access&ReadSnapshot != 0
	// Before leave: when a revocation returns all sources there were are counted.
	if s.parent != nil {
		s.parent.sources.Add(1)
	}
	r.sources.Add(1)
	return s, Granted
}

// Revoked reports whether the peer has no right to the memory any more.
func (s *Source) Revoked() bool { return s.region.Epoch() != s.epoch }

// Done ends the use of the memory for the peer. It must be called once, and may call the
// functions of [Region.AfterSources].
func (s *Source) Done() {
	s.region.sourceDone()
	if s.parent != nil {
		s.parent.sourceDone()
	}
}

func (r *Region) sourceDone() {
	if r.sources.Add(-1) == 0 && r.awaited.Load() {
		r.sourcesDone()
	}
}

// AfterSources revokes all remote rights and calls f once, when no Source of the region or
// of a window bound to it is in use: before AfterSources returns, or within [Source.Done].
// The memory may then be changed, if windows bound to it were revoked before. If a region of
// Table.Reserve is bound again meanwhile, f waits for its new sources, too.
func (r *Region) AfterSources(f func()) {
	r.mu.Lock()
	r.revoke()
	r.after = append(r.after, f)
	r.awaited.Store(true)
	r.mu.Unlock()
	r.sourcesDone()
}

// sourcesDone calls those that wait, if there is no source. What was added to after
// had the region revoked before, so that no new source is among those it waits for.
func (r *Region) sourcesDone() {
	r.mu.Lock()
	var fs []func()
	if r.sources.Load() == 0 {
		fs, r.after = r.after, nil
		r.awaited.Store(false)
	}
	r.mu.Unlock()
	for _, f := range fs {
		f()
	}
}
