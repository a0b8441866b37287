package pmi

import (
	"errors"
	"strings"
	"testing"
)

// A rank of several that a launcher without PMI-1 has started is told so, and does
// not take itself for a job of one.
func TestForeignLaunchers(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  string
		want string // in the error; empty: none
	}{
		{"alone", "", ""},
		{"mpirun of Open MPI", "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1 PMIX_RANK=1 PMIX_NAMESPACE=x", "Open MPI's mpirun started 4 ranks, with PMIx (OMPI_COMM_WORLD_SIZE=4)"},
		{"mpirun with one rank", "OMPI_COMM_WORLD_SIZE=1 PMIX_RANK=0 PMIX_NAMESPACE=x", ""},
		{"srun", "SLURM_STEP_NUM_TASKS=8 SLURM_PROCID=3 SLURM_NTASKS=8", "srun --mpi=pmi2"},
		{"srun --mpi=pmix", "SLURM_STEP_NUM_TASKS=2 PMIX_RANK=0 PMIX_NAMESPACE=slurm.1.0", "srun started 2 ranks, with PMIx"},
		{"srun with one task", "SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=8", ""},
		{"batch script of Slurm", "SLURM_NTASKS=8 SLURM_PROCID=0", ""},
		{"another launcher of PMIx", "PMIX_RANK=1 PMIX_NAMESPACE=prterun-1", "PMIX_NAMESPACE=prterun-1"},
		{"jsrun", "JSM_NAMESPACE_SIZE=2", "jsrun"},
		{"on purpose", "OMPI_COMM_WORLD_SIZE=4 WEFT_SINGLETON=1", ""},
		{"nonsense", "OMPI_COMM_WORLD_SIZE=many", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := make(map[string]string)
			for v := range strings.FieldsSeq(tt.env) {
				k, v, _ := strings.Cut(v, "=")
				env[k] = v
			}
			err := foreign(func(k string) string { return env[k] })
			if tt.want == "" {
				if err != nil {
					t.Errorf("got error %v, want none", err)
				}
				return
			}
			if !errors.Is(err, ErrLauncher) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "weft run") {
				t.Errorf("got error %v, want one with %q and what to use", err, tt.want)
			}
		})
	}
}
