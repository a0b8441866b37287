package ddp

import "fmt"

// String tells the STag.
func (r *Region) String() string { return fmt.Sprintf("ddp.Region %#x", r.stag) }

// String tells what it is only: the rest is guarded by a lock.
func (t *Table) String() string { return "ddp.Table" }

// String tells what it is only: the rest is guarded by a lock.
func (p *Pool) String() string { return "ddp.Pool" }

// String tells what it is only: the rest is guarded by a lock of the caller's.
func (q *Queue) String() string { return "ddp.Queue" }

// String tells what it is only: the rest is guarded by a lock of the caller's.
func (r *Receiver) String() string { return "ddp.Receiver" }

// String tells what it is.
func (s *Scope) String() string { return "ddp.Scope" }

// String names the counter and the bytes it holds.
func (s *Snapshots) String() string { return fmt.Sprintf("ddp.Snapshots of %d bytes", s.Held()) }
