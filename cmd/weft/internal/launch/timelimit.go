package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/weftstack/weft/internal/cli"
)

const (
	// envTimeout is the variable that Open MPI and MPICH have for the time limit of a job, in seconds.
	envTimeout = "MPIEXEC_TIMEOUT"
	// exitTimeout is the exit status of a job that was ended at its time limit, the one that
	// timeout(1) of GNU coreutils has for that.
	exitTimeout = 124
)

// timeLimit is how long a job may take.
type timeLimit struct {
	after time.Duration // 0: no limit
	from  string        // the option or the variable that has set it
}

// errTimeout ends a job that takes longer than its time limit.
var errTimeout = errors.New("the job did not end")

// passed is the cause of the end of a job at its time limit.
func (l timeLimit) passed() error {
	return fmt.Errorf("%w within %v, the limit of %s", errTimeout, l.after, l.from)
}

// stopped is the outcome of a job, or of the building of its programs, that failed with err while ctx was
// done or not: at the time limit that is the reason.
func stopped(ctx context.Context, err error) (int, error) {
	cause := context.Cause(ctx)
	if errors.Is(cause, errTimeout) {
		return exitTimeout, cause
	}
	return cli.ExitFail, cmp.Or(err, cause)
}

// complete takes the limit of the environment unless -timeout was given, and checks it.
func (l *timeLimit) complete(given bool) error {
	l.from = "-timeout"
	if text := os.Getenv(envTimeout); !given && text != "" {
		l.from = envTimeout
		if err := (*seconds)(&l.after).Set(text); err != nil {
			return fmt.Errorf("%s=%q: %w", envTimeout, text, err)
		}
	}
	if l.after < 0 {
		return fmt.Errorf("%s %v is negative", l.from, l.after)
	}
	return nil
}

// seconds is the value of a flag for a time: 5m, 300ms, or a number of seconds without a unit.
type seconds time.Duration

// Set implements flag.Value.
func (s *seconds) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 32)
	d := time.Duration(n) * time.Second
	if err != nil {
		if d, err = time.ParseDuration(text); err != nil {
			return errors.New("want a time with its unit, such as 300ms, 2s or 5m, or a whole number of seconds")
		}
	}
	*s = seconds(d)
	return nil
}

// String implements flag.Value.
func (s *seconds) String() string { return time.Duration(*s).String() }
