package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/weftstack/weft/cmd/weft/internal/bench"
	"github.com/weftstack/weft/cmd/weft/internal/emulator"
	"github.com/weftstack/weft/cmd/weft/internal/gateway"
	"github.com/weftstack/weft/cmd/weft/internal/installmpi"
	"github.com/weftstack/weft/cmd/weft/internal/launch"
	"github.com/weftstack/weft/cmd/weft/internal/perf"
	"github.com/weftstack/weft/cmd/weft/internal/rping"
	"github.com/weftstack/weft/cmd/weft/internal/version"
	"github.com/weftstack/weft/cmd/weft/internal/wrapper"
	"github.com/weftstack/weft/internal/cli"
)

func main() {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	switch {
	case wrapper.Is(name):
		os.Exit(wrapper.Main(name, prefix(), os.Args[1:]))
	case name == "mpiexec" || name == "mpirun":
		os.Exit(launch.Main(os.Args[1:]))
	}
	os.Exit(program().Main(os.Args[1:]))
}

// prefix returns the directory that weft is installed in: its executable is in bin
// below.
func prefix() string {
	exe, err := os.Executable()
	if err == nil {
		exe, err = filepath.EvalSymlinks(exe)
	}
	if err != nil {
		exe = os.Args[0]
	}
	return filepath.Dir(filepath.Dir(exe))
}

// program returns weft with its subcommands.
func program() *cli.Program {
	return &cli.Program{
		Name:  "weft",
		Short: "weft runs and examines programs over user-space SCTP, iWARP and MPI.",
		Commands: []cli.Command{
			{Name: "run", Short: "start the ranks of an MPI program on this host or on several", Run: launch.Main},
			{Name: "gateway", Short: "relay messages of jobs between sites", Run: gateway.Main},
			{Name: "net", Short: "run programs on emulated hosts and networks", Run: emulator.Main},
			{Name: "perf", Short: "measure throughput and latency of a transport", Run: perf.Main},
			{Name: "bench", Short: "measure MPI as the OSU micro-benchmarks do", Run: bench.Main},
			{Name: "rping", Short: "ping by RDMA over TCP, as rping of librdmacm does", Run: rping.Main},
			{Name: "install-mpi", Short: "build and install the C library: mpi.h, libmpi_abi, mpicc", Run: installmpi.Main},
			{Name: "nameserver", Short: "serve published names to several jobs", Run: launch.NameServerMain},
			{Name: "version", Short: "print the version", Run: version.Main},
		},
	}
}
