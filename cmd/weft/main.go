package main

import (
	"os"

	"github.com/weftstack/weft/cmd/weft/internal/bench"
	"github.com/weftstack/weft/cmd/weft/internal/emulator"
	"github.com/weftstack/weft/cmd/weft/internal/gateway"
	"github.com/weftstack/weft/cmd/weft/internal/launch"
	"github.com/weftstack/weft/cmd/weft/internal/perf"
	"github.com/weftstack/weft/cmd/weft/internal/rping"
	"github.com/weftstack/weft/cmd/weft/internal/version"
	"github.com/weftstack/weft/internal/cli"
)

func main() { os.Exit(program().Main(os.Args[1:])) }

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
			{Name: "nameserver", Short: "serve published names to several jobs", Run: launch.NameServerMain},
			{Name: "version", Short: "print the version", Run: version.Main},
		},
	}
}
