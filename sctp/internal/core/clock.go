package core

// Time is a point on a monotonic clock: nanoseconds since an epoch that the
// caller chose once. The zero Time means "never" where a timer is asked for.
type Time int64
