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

// nameService publishes names.
type nameService interface {
	Publish(ctx context.Context, name, port string) error
	Unpublish(ctx context.Context, name, port string) error
	Lookup(ctx context.Context, name string) (string, error)
}

// names returns the name service: that of WithNameServer, else the launcher.
func (w *World) names() (nameService, error) {
	if err := w.usable(); err != nil {
		return nil, err
	}
	if s := w.opts.names; s != "" {
		return pmi.NameClient(s), nil
	}
	if s, ok := w.job.Launcher.(nameService); ok {
		return s, nil
	}
	return nil, fmt.Errorf("%w: no name service", ErrService)
}

// WithNameServer makes [World.PublishName] and [World.LookupName] use a name service that several
// jobs share: the address is that which `weft nameserver` prints. By default the launcher keeps
// names for its own jobs; in RunLocal the process does, and a name ends with the call of RunLocal
// that published it.
func WithNameServer(address string) Option {
	return func(o *options) error {
		o.names = address
		return nil
	}
}

// PublishName lets processes find a port by the name of a service (MPI_Publish_name). It returns
// ErrService if the name is published already. A name outlives the process, until
// [World.UnpublishName] or the end of the name service. It blocks until the name service has
// answered.
func (w *World) PublishName(ctx context.Context, service, port string) error {
	s, err := w.names()
	if err == nil {
		err = s.Publish(context.WithoutCancel(ctx), service, port)
	}
	return renamed(ErrService, err, service)
}

// UnpublishName undoes [World.PublishName] with the same arguments (MPI_Unpublish_name). It returns
// ErrService if the name is not published. It blocks until the name service has answered.
func (w *World) UnpublishName(ctx context.Context, service, port string) error {
	s, err := w.names()
	if err == nil {
		err = s.Unpublish(context.WithoutCancel(ctx), service, port)
	}
	return renamed(ErrService, err, service)
}

// LookupName returns the port that is published under the name of a service, or ErrName if there is
// none (MPI_Lookup_name). It blocks until the name service has answered, not until the name is
// published.
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
