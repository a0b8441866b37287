package dynamic

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// ParentKey is the key of the launcher under which new processes find the port to connect to.
const ParentKey = "weft-parent"

// A Spawner is a launcher that starts processes.
type Spawner interface {
	Spawn(ctx context.Context, s *pmi.Spawn) (*pmi.Spawned, error)
}

// Launch has a launcher start processes that connect to a port. It returns the name that the
// launcher gives their job, or an error for each process if one of them cannot be started.
func Launch(ctx context.Context, launcher any, cmds []pmi.Command, port string) (job string, each []error, err error) {
	s, ok := launcher.(Spawner)
	if !ok {
		return "", nil, fmt.Errorf("%w: no launcher that could", mpierr.ErrSpawn)
	}
	req := &pmi.Spawn{Preput: map[string]string{ParentKey: port}, Commands: cmds}
	if err := req.Check(); err != nil {
		return "", nil, fmt.Errorf("%w: %w", mpierr.ErrSpawn, err)
	}
	// The request is not given up with ctx, because that would close the connection to
	// the launcher, which answers soon or has ended.
	out, err := s.Spawn(context.WithoutCancel(ctx), req)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", mpierr.ErrSpawn, err)
	}
	if out.Err() != nil {
		return "", out.Errs, nil
	}
	return out.Job, nil, nil
}
