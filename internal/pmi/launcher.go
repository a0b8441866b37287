package pmi

import (
	"errors"
	"fmt"
	"strconv"
)

// EnvAlone makes FromEnv ignore launchers that do not speak PMI-1: every process is
// a job of its own, on purpose.
const EnvAlone = "WEFT_SINGLETON"

// ErrLauncher is returned where a launcher has started several ranks and offers them
// nothing to find each other that this package speaks. Without it each rank would
// take itself for a job of one.
var ErrLauncher = errors.New("pmi: the launcher does not speak PMI-1")

// launchers lists how launchers tell a process how many ranks they started. The
// first entry with a size decides.
var launchers = []struct {
	name, size string
	use        string // what to do instead
}{
	{"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", useWeft},
	{"IBM's jsrun", "JSM_NAMESPACE_SIZE", useWeft},
	{"srun", "SLURM_STEP_NUM_TASKS", "start the program with srun --mpi=pmi2, or " + useWeft},
	{"MVAPICH's mpirun_rsh", "MPIRUN_NPROCS", useWeft},
}

const useWeft = "use weft run -n N PROGRAM (with -hosts for several hosts) or MPICH's mpiexec"

// foreign returns an error if the environment is that of one of several ranks whose
// launcher set neither PMI_FD nor PMI_PORT.
func foreign(getenv func(string) string) error {
	if getenv(EnvAlone) == "1" {
		return nil
	}
	for _, l := range launchers {
		n, err := strconv.Atoi(getenv(l.size))
		if err != nil {
			continue
		}
		if n < 2 {
			return nil
		}
		why := ""
		if getenv("PMIX_RANK") != "" {
			why = ", with PMIx"
		}
		return fmt.Errorf("%w: %s started %d ranks%s (%s=%d), without %s or %s: %s; with %s=1 each rank is a job of its own",
			ErrLauncher, l.name, n, why, l.size, n, EnvFD, EnvPort, l.use, EnvAlone)
	}
	if ns := getenv("PMIX_NAMESPACE"); ns != "" {
		return fmt.Errorf("%w: a launcher with PMIx started this process (PMIX_NAMESPACE=%s, PMIX_RANK=%s): %s; with %s=1 each rank is a job of its own",
			ErrLauncher, clip(ns), clip(getenv("PMIX_RANK")), useWeft, EnvAlone)
	}
	return nil
}
