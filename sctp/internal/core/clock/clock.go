// Package clock defines the time that the protocol core is told.
package clock

// Time is a point on a monotonic clock: nanoseconds since an epoch that the
// caller chose once. The zero Time means "never" where a timer is asked for.
//
// It is an integer, not a time.Time, because timers are compared for every packet.
type Time int64
