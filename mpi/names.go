package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/internal/pmi"
)

// Limits of published names.
const (
	// MaxServiceName bounds the name of a service, in bytes.
	MaxServiceName = pmi.MaxName
	// MaxServices bounds the names that are published at a time.
	MaxServices = pmi.MaxNames
)

// nameService is where names are published.
type nameService interface {
	Publish(ctx context.Context, name, port string) error
	Unpublish(ctx context.Context, name, port string) error
	Lookup(ctx context.Context, name string) (string, error)
}

// names returns the one to use: that of WithNameServer, else the launcher.
func (w *World) names() (nameService, error) {
	if err := w.usable(); err != nil {
		return nil, err
	}
	if s := w.opts.names; s != "" {
		return pmi.NameClient(s), nil
	}
	if s, ok := w.boot.(nameService); ok {
		return s, nil
	}
	return nil, fmt.Errorf("%w: no name service", ErrService)
}

// WithNameServer makes PublishName and LookupName use a name service that
// several jobs share, `weft nameserver`, which has printed the address. Without it
// names are those of the launcher, for its jobs only; in RunLocal those of the process,
// and a name ends with the call of RunLocal whose ranks published it.
func WithNameServer(address string) Option {
	return func(o *options) error {
		o.names = address
		return nil
	}
}

// PublishName lets processes find a port by the name of a service
// (MPI_Publish_name). It must not be published at the time. A name outlives the
// process, until UnpublishName or the end of the name service. It blocks until
// the name service has answered.
func (w *World) PublishName(ctx context.Context, service, port string) error {
	s, err := w.names()
	if err == nil {
		err = s.Publish(context.WithoutCancel(ctx), service, port)
	}
	return renamed(ErrService, err, service)
}

// UnpublishName undoes PublishName with the same arguments
// (MPI_Unpublish_name). It blocks until the name service has answered.
func (w *World) UnpublishName(ctx context.Context, service, port string) error {
	s, err := w.names()
	if err == nil {
		err = s.Unpublish(context.WithoutCancel(ctx), service, port)
	}
	return renamed(ErrService, err, service)
}

// LookupName returns the port that was published under the name of a service, or
// ErrName if there is none (MPI_Lookup_name). It does not wait for it.
func (w *World) LookupName(ctx context.Context, service string) (string, error) {
	s, err := w.names()
	port := ""
	if err == nil {
		port, err = s.Lookup(context.WithoutCancel(ctx), service)
	}
	return port, renamed(ErrName, err, service)
}

func renamed(as, err error, service string) error {
	if err == nil || errors.Is(err, as) {
		return err
	}
	return fmt.Errorf("%w: %.40q: %w", as, service, err)
}
