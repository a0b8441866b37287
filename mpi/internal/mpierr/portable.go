package mpierr

import "errors"

// A Portable is an error in a form that can be sent to other processes.
type Portable struct {
	Class Class
	Is    uint64 `json:",omitempty"` // bit i: the error wraps the one of sentinels[i]
	Text  string
}

// maxPortableText bounds the text of a Portable in bytes.
const maxPortableText = 8 << 10

// MakePortable returns the portable form of err, or nil for nil.
func MakePortable(err error) *Portable {
	if err == nil {
		return nil
	}
	text := err.Error()
	p := &Portable{Class: ClassOf(err), Text: text[:min(len(text), maxPortableText)]}
	for i, x := range sentinels {
		if errors.Is(err, x.err) {
			p.Is |= 1 << i
		}
	}
	return p
}

// Err returns a *RemoteError with the class and the text of the error that p was made
// of. It wraps the same errors of this package. It returns nil if p is nil.
func (p *Portable) Err() error {
	if p == nil {
		return nil
	}
	e := &RemoteError{portable: p}
	for i, x := range sentinels {
		if p.Is&(1<<i) != 0 {
			e.is = append(e.is, x.err)
		}
	}
	return e
}

// A RemoteError is an error that happened in another process.
type RemoteError struct {
	portable *Portable
	is       []error
}

// Error returns the text of the error there.
func (e *RemoteError) Error() string { return e.portable.Text }

// ErrorClass returns the class of the error there.
func (e *RemoteError) ErrorClass() Class { return e.portable.Class }

// Unwrap gives the errors of this package that the error there wraps to errors.Is.
func (e *RemoteError) Unwrap() []error { return e.is }
