package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// parent is the communicator with the processes that have spawned this one, from the first
// MPI_Comm_get_parent on.
var parent struct {
	sync.Mutex
	handle abi.Handle
}

// CommGetParent is MPI_Comm_get_parent: MPI_COMM_NULL if there is none, or after it was freed.
func CommGetParent(comm uintptr) int {
	const proc = "MPI_Comm_get_parent"
	cbinding.NullHandle(comm, abi.CommNull)
	w, err := cbinding.NeedWorld()
	if err == nil {
		err = cbinding.Out("parent", comm)
	}
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, publishParent(w.Parent(), comm))
}

// publishParent stores the handle of the parent p, which may be nil.
func publishParent(p *mpi.Comm, comm uintptr) error {
	parent.Lock()
	defer parent.Unlock()
	switch {
	case p == nil:
		cbinding.SetHandle(comm, abi.CommNull)
		return nil
	case cbinding.Comms.Get(parent.handle) != nil:
		cbinding.SetHandle(comm, parent.handle)
		return nil
	}
	p.SetName("MPI_COMM_PARENT")
	o := &cbinding.Communicator{Comm: p}
	if err := o.Publish(comm); err != nil {
		return err
	}
	parent.handle = o.Handle
	return nil
}

// newInter stores the handle of an intercommunicator with processes that were not there before.
func newInter(c *cbinding.Communicator, p uintptr, d *mpi.Comm, err error) error {
	if err != nil {
		return err
	}
	return c.NewComm(p, d)
}

// rooted returns the communicator of a call whose arguments count at root only, and whether this is the
// root. It checks what all ranks give: if that is wrong, takePart makes the call as one that this rank refuses.
func rooted(comm abi.Handle, root int, newcomm uintptr, takePart func(context.Context, *mpi.Comm)) (
	c *cbinding.Communicator, isRoot bool, err error) {
	if c, err = cbinding.CommOf(comm); err != nil {
		return nil, false, err
	}
	if c.IsInter() {
		return c, false, cbinding.ArgError(abi.ErrComm, "comm", c.Comm, "is an intercommunicator")
	}
	if root < 0 || root >= c.Size() {
		err = c.BadRank("root", root, abi.ErrRoot)
	} else {
		err = cbinding.CommRoom("newcomm", newcomm)
	}
	if err != nil {
		err = c.RefuseCall(err, func(ctx context.Context) { takePart(ctx, c.Comm) })
	}
	return c, c.Rank() == root, err
}

// refuseSpawn takes part in MPI_Comm_spawn or MPI_Comm_spawn_multiple.
func refuseSpawn(ctx context.Context, c *mpi.Comm) { _, _ = c.SpawnMultiple(ctx, nil, 0) }

// CommSpawn is MPI_Comm_spawn.
func CommSpawn(command, argv uintptr, maxprocs int, info abi.Handle, root int, comm abi.Handle,
	intercomm, errcodes uintptr) int {
	cbinding.NullHandle(intercomm, abi.CommNull)
	const proc = "MPI_Comm_spawn"
	c, isRoot, err := rooted(comm, root, intercomm, refuseSpawn)
	if c == nil {
		return cbinding.Fail(proc, err)
	}
	if err != nil {
		return c.Done(proc, err)
	}
	var cmds []mpi.Command
	var bad error
	if isRoot {
		var cmd mpi.Command
		if cmd, bad = commandOf("command", command, argv, maxprocs, info); bad == nil {
			cmds = []mpi.Command{cmd}
		}
	}
	return c.Done(proc, spawn(c, cmds, bad, root, intercomm, errcodes))
}

// CommSpawnMultiple is MPI_Comm_spawn_multiple.
func CommSpawnMultiple(count int, commands, argvs, maxprocs, infos uintptr, root int, comm abi.Handle,
	intercomm, errcodes uintptr) int {
	cbinding.NullHandle(intercomm, abi.CommNull)
	const proc = "MPI_Comm_spawn_multiple"
	c, isRoot, err := rooted(comm, root, intercomm, refuseSpawn)
	if c == nil {
		return cbinding.Fail(proc, err)
	}
	if err != nil {
		return c.Done(proc, err)
	}
	var cmds []mpi.Command
	var bad error
	if isRoot {
		if cmds, bad = commandsOf(count, commands, argvs, maxprocs, infos); bad != nil {
			cmds = nil
		}
	}
	return c.Done(proc, spawn(c, cmds, bad, root, intercomm, errcodes))
}

// commandOf reads a command.
func commandOf(name string, command, argv uintptr, n int, info abi.Handle) (mpi.Command, error) {
	path, err := cbinding.Str(name, command, cbinding.MaxArgument)
	if err != nil {
		return mpi.Command{}, err
	}
	if _, err := exec.LookPath(path); err != nil && !strings.Contains(path, "/") {
		// As with other launchers, the working directory is searched last.
		if here, err := exec.LookPath("./" + path); err == nil {
			path = here
		}
	}
	args, err := cbinding.Strs("argv", argv, cbinding.MaxArgument)
	if err != nil {
		return mpi.Command{}, err
	}
	hints, err := cbinding.HintsOf(info)
	if err == nil && n < 0 {
		err = cbinding.ArgError(abi.ErrArg, "maxprocs", n, "is negative")
	}
	return mpi.Command{Path: path, Args: args, N: n, Info: hints}, err
}

func commandsOf(count int, commands, argvs, maxprocs, infos uintptr) ([]mpi.Command, error) {
	if count <= 0 || count > mpi.MaxCommands {
		return nil, cbinding.ArgError(abi.ErrArg, "count", count, fmt.Sprintf("is not between 1 and %d", mpi.MaxCommands))
	}
	if commands == 0 {
		return nil, cbinding.NullError("array_of_commands")
	}
	ns, err := cbinding.Ints("array_of_maxprocs", maxprocs, count, false)
	if err != nil {
		return nil, err
	}
	hs, err := cbinding.Handles("array_of_info", infos, count)
	if err != nil {
		return nil, err
	}
	cmds := make([]mpi.Command, count)
	for i, p := range cbinding.Array[uintptr](commands, count) {
		var args uintptr
		if argvs != abi.ArgvsNull {
			args = cbinding.Array[uintptr](argvs, count)[i]
		}
		if cmds[i], err = commandOf(fmt.Sprintf("array_of_commands[%d]", i), p, args, ns[i], hs[i]); err != nil {
			return nil, err
		}
	}
	return cmds, nil
}

// spawn starts commands. bad is why the arguments at the root are wrong: it must take part nevertheless,
// or the other ranks would wait for it.
func spawn(c *cbinding.Communicator, cmds []mpi.Command, bad error, root int, intercomm, errcodes uintptr) error {
	n := 0
	for _, x := range cmds {
		n += x.N
	}
	d, err := c.SpawnMultiple(cbinding.Background, cmds, root)
	if err == nil && c.Rank() != root {
		n = d.RemoteSize()
	}
	if errcodes != abi.ErrcodesIgnore {
		var each *mpi.SpawnError
		errors.As(err, &each)
		codes := cbinding.Array[int32](errcodes, n)
		for i := range codes {
			var code int32
			switch {
			case each != nil && i < len(each.Errs):
				code = int32(cbinding.CodeOf(each.Errs[i]))
			case err != nil:
				code = int32(cbinding.CodeOf(err))
			case i < d.RemoteSize():
				code = abi.Success
			default: // not started, by the hint "soft"
				code = abi.ErrSpawn
			}
			codes[i] = code
		}
	}
	if bad != nil {
		err = bad
	}
	return newInter(c, intercomm, d, err)
}

// OpenPort is MPI_Open_port.
func OpenPort(info abi.Handle, port uintptr) int {
	const proc = "MPI_Open_port"
	w, err := cbinding.NeedWorld()
	if err == nil {
		err = cbinding.Out("port_name", port)
	}
	if err == nil {
		_, err = cbinding.HintsOf(info)
	}
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	name, err := w.OpenPort()
	if err == nil && len(name) >= abi.MaxPortName {
		long := &cbinding.CallError{Class: abi.ErrIntern, Text: "the name of the port is too long: " + name}
		err = errors.Join(long, w.ClosePort(name))
	}
	if err == nil {
		err = cbinding.SetStr(port, 0, name, abi.MaxPortName)
	}
	return cbinding.Fail(proc, err)
}

// ClosePort is MPI_Close_port.
func ClosePort(port uintptr) int {
	const proc = "MPI_Close_port"
	w, err := cbinding.NeedWorld()
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	name, err := cbinding.Str("port_name", port, abi.MaxPortName)
	if err == nil {
		err = w.ClosePort(name)
	}
	return cbinding.Fail(proc, err)
}

// CommAccept is MPI_Comm_accept.
func CommAccept(port uintptr, info abi.Handle, root int, comm abi.Handle, newcomm uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	return meet("MPI_Comm_accept", port, info, root, comm, newcomm,
		func(ctx context.Context, c *mpi.Comm, name string, _ mpi.Info) (*mpi.Comm, error) {
			return c.Accept(ctx, name, root)
		})
}

// CommConnect is MPI_Comm_connect.
func CommConnect(port uintptr, info abi.Handle, root int, comm abi.Handle, newcomm uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	return meet("MPI_Comm_connect", port, info, root, comm, newcomm,
		func(ctx context.Context, c *mpi.Comm, name string, hints mpi.Info) (*mpi.Comm, error) {
			return c.Connect(ctx, name, root, hints)
		})
}

func meet(proc string, port uintptr, info abi.Handle, root int, comm abi.Handle, newcomm uintptr,
	f func(ctx context.Context, c *mpi.Comm, name string, hints mpi.Info) (*mpi.Comm, error)) int {
	c, isRoot, err := rooted(comm, root, newcomm, func(ctx context.Context, c *mpi.Comm) { _, _ = f(ctx, c, "", nil) })
	if c == nil {
		return cbinding.Fail(proc, err)
	}
	if err != nil {
		return c.Done(proc, err)
	}
	var name string
	var hints mpi.Info
	var bad error
	if isRoot { // with a wrong argument it takes part nevertheless: no port has an empty name
		if name, bad = cbinding.Str("port_name", port, abi.MaxPortName); bad == nil {
			if hints, bad = cbinding.HintsOf(info); bad != nil {
				name = ""
			}
		}
	}
	d, err := f(cbinding.Background, c.Comm, name, hints)
	if bad != nil {
		err = bad
	}
	return c.Done(proc, newInter(c, newcomm, d, err))
}

// PublishName is MPI_Publish_name.
func PublishName(service uintptr, info abi.Handle, port uintptr) int {
	return named("MPI_Publish_name", service, info, port, func(w *mpi.World, s, p string) error {
		return w.PublishName(cbinding.Background, s, p)
	})
}

// UnpublishName is MPI_Unpublish_name.
func UnpublishName(service uintptr, info abi.Handle, port uintptr) int {
	return named("MPI_Unpublish_name", service, info, port, func(w *mpi.World, s, p string) error {
		return w.UnpublishName(cbinding.Background, s, p)
	})
}

func named(proc string, service uintptr, info abi.Handle, port uintptr,
	f func(w *mpi.World, service, port string) error) int {
	w, err := cbinding.NeedWorld()
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	s, err := cbinding.Str("service_name", service, cbinding.MaxArgument)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if _, err := cbinding.HintsOf(info); err != nil {
		return cbinding.Fail(proc, err)
	}
	p, err := cbinding.Str("port_name", port, abi.MaxPortName)
	if err == nil {
		err = f(w, s, p)
	}
	return cbinding.Fail(proc, err)
}

// LookupName is MPI_Lookup_name.
func LookupName(service uintptr, info abi.Handle, port uintptr) int {
	const proc = "MPI_Lookup_name"
	w, err := cbinding.NeedWorld()
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	s, err := cbinding.Str("service_name", service, cbinding.MaxArgument)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if _, err := cbinding.HintsOf(info); err != nil {
		return cbinding.Fail(proc, err)
	}
	name, err := w.LookupName(cbinding.Background, s)
	if err == nil {
		err = cbinding.SetStr(port, 0, name, abi.MaxPortName)
	}
	return cbinding.Fail(proc, err)
}
