package ddpmpa

// String tells what it is only: the rest is guarded by a lock.
func (c *Channel) String() string { return "ddpmpa.Channel" }

// String tells what it is only: one goroutine at a time may use it.
func (f *Framer) String() string { return "ddpmpa.Framer" }

// String tells what it is only: one goroutine at a time may use it.
func (d *Deframer) String() string { return "ddpmpa.Deframer" }

// String tells what it is, not the private data.
func (r *Request) String() string { return "ddpmpa.Request" }
