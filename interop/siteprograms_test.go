package interop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/weftstack/weft/mpi"
)

// envProgram has this test binary, as a rank of a job, be a program whose result is the same
// over any network; rank 0 prints it.
const (
	envProgram = "WEFT_INTEROP_PROGRAM"
	envSpawned = "WEFT_INTEROP_SPAWNED" // in processes that the program spawns
)

func init() {
	if strings.HasPrefix(os.Getenv(envProgram), "spawn") && len(os.Args) > 1 && os.Args[1] == envSpawned {
		playRole(envProgram, func(string) error { return asRank(spawnedSquare) })
	}
	playRole(envProgram, func(words string) error {
		name, rest, _ := strings.Cut(words, " ")
		f, ok := sitePrograms[name]
		if !ok {
			return fmt.Errorf("no program %q", name)
		}
		return asRank(func(ctx context.Context, w *mpi.World) error { return f(ctx, w.Comm(), rest) })
	})
}

// asRank joins the job for f.
func asRank(f func(ctx context.Context, w *mpi.World) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patternTime)
	defer cancel()
	w, err := mpi.Init(ctx)
	if err != nil {
		return err
	}
	if err := f(ctx, w); err != nil {
		return fmt.Errorf("rank %d: %w", w.Rank(), err)
	}
	return w.Finalize(ctx)
}

var sitePrograms = map[string]func(ctx context.Context, c *mpi.Comm, arg string) error{
	"putget":   programPutGet,
	"spawn":    programSpawn,
	"file":     programFile,
	"transfer": programTransfer,
}

// programPutGet has every rank write to, read from and count in the memory of all others.
func programPutGet(ctx context.Context, c *mpi.Comm, _ string) error {
	const cells = 5000
	n, me := c.Size(), c.Rank()
	win, err := mpi.WinAllocate[uint64](ctx, c, n*cells+1)
	if err != nil {
		return err
	}
	block := func(from, to, step int) []uint64 {
		b := make([]uint64, cells)
		r := rand.New(rand.NewPCG(uint64(from)<<32|uint64(to), uint64(step)))
		for i := range b {
			b[i] = r.Uint64()
		}
		return b
	}
	sum := sha256.New()
	for step := range 3 {
		if err := win.Fence(ctx); err != nil {
			return err
		}
		for to := range n {
			if err := win.Put(ctx, block(me, to, step), to, me*cells); err != nil {
				return err
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		// What rank k put to its right neighbour, read from there.
		got := make([][]uint64, n)
		for k := range n {
			got[k] = make([]uint64, cells)
			if err := win.Get(ctx, got[k], (k+1)%n, k*cells); err != nil {
				return err
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		for k := range n {
			want := block(k, (k+1)%n, step)
			for i := range want {
				if got[k][i] != want[i] {
					return fmt.Errorf("step %d: cell %d of rank %d at rank %d is %x, want %x", step, i, k, (k+1)%n, got[k][i], want[i])
				}
			}
			fmt.Fprint(sum, got[k])
		}
	}
	const draws = 20
	if err := win.LockAll(ctx); err != nil {
		return err
	}
	for range draws {
		if _, err := win.FetchAndOp(ctx, 1, 0, n*cells, mpi.Sum); err != nil {
			return err
		}
	}
	if err := win.UnlockAll(ctx); err != nil {
		return err
	}
	if err := mpi.Barrier(ctx, c); err != nil {
		return err
	}
	if me == 0 {
		if got := win.Buf()[n*cells]; got != uint64(n*draws) {
			return fmt.Errorf("the counter is %d, want %d", got, n*draws)
		}
		fmt.Printf("%x %d\n", sum.Sum(nil), win.Buf()[n*cells])
	}
	return win.Free(ctx)
}

// spawnedProcesses is how many processes programSpawn spawns.
const spawnedProcesses = 4

// programSpawn spawns processes, gives each a number and gathers the squares, and with "hosts"
// on which emulated hosts all run.
func programSpawn(ctx context.Context, c *mpi.Comm, arg string) error {
	workers, err := c.Spawn(ctx, mpi.Command{Path: os.Args[0], Args: []string{envSpawned}, N: spawnedProcesses}, 0)
	if err != nil {
		return err
	}
	host, err := strconv.Atoi(os.Getenv("WEFT_NET_HOST"))
	if err != nil {
		return err
	}
	ours := make([]int, c.Size())
	if err := mpi.Allgather(ctx, c, []int{host}, ours); err != nil {
		return err
	}
	if c.Rank() > 0 {
		if err := mpi.Scatter[int](ctx, workers, nil, nil, mpi.ProcNull); err != nil {
			return err
		}
		if err := mpi.Gather[int](ctx, workers, nil, nil, mpi.ProcNull); err != nil {
			return err
		}
		return workers.Disconnect(ctx)
	}
	numbers, results := make([]int, spawnedProcesses), make([]int, 2*spawnedProcesses)
	for i := range numbers {
		numbers[i] = i + 2
	}
	if err := mpi.Scatter(ctx, workers, numbers, nil, mpi.Root); err != nil {
		return err
	}
	if err := mpi.Gather(ctx, workers, nil, results, mpi.Root); err != nil {
		return err
	}
	var squares, hosts []int
	for i := range spawnedProcesses {
		squares, hosts = append(squares, results[2*i]), append(hosts, results[2*i+1])
	}
	fmt.Print(squares)
	if arg == "hosts" {
		fmt.Printf(" on hosts %v by hosts %v", hosts, ours)
	}
	fmt.Println()
	return workers.Disconnect(ctx)
}

func spawnedSquare(ctx context.Context, w *mpi.World) error {
	if w.Parent() == nil {
		return errors.New("not spawned")
	}
	host, err := strconv.Atoi(os.Getenv("WEFT_NET_HOST"))
	if err != nil {
		return err
	}
	x := make([]int, 1)
	if err := mpi.Scatter(ctx, w.Parent(), nil, x, 0); err != nil {
		return err
	}
	if err := mpi.Gather(ctx, w.Parent(), []int{x[0] * x[0], host}, nil, 0); err != nil {
		return err
	}
	return w.Parent().Disconnect(ctx)
}

// programFile has the ranks write a file together, each the blocks that are its, and read
// it back.
func programFile(ctx context.Context, c *mpi.Comm, name string) error {
	const block, rounds = 4096, 16
	n, me := c.Size(), c.Rank()
	f, err := mpi.FileOpen[byte](ctx, c, name, mpi.FileReadWrite|mpi.FileCreate, nil)
	if err != nil {
		return err
	}
	content := func(i int) []byte {
		b := make([]byte, block)
		rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(b)
		return b
	}
	one, err := mpi.TypeOf[byte]()
	if err != nil {
		return err
	}
	blocks, err := mpi.TypeContiguous(block, one)
	if err != nil {
		return err
	}
	every, err := mpi.TypeResized(blocks, 0, n*block)
	if err != nil {
		return err
	}
	if err := f.SetView(ctx, int64(me*block), every, mpi.Native); err != nil {
		return err
	}
	var mine []byte
	for i := range rounds {
		mine = append(mine, content(i*n+me)...)
	}
	if _, err := f.WriteAtAll(ctx, 0, mine); err != nil {
		return err
	}
	if err := f.SetView(ctx, 0, nil, mpi.Native); err != nil {
		return err
	}
	all := make([]byte, n*rounds*block)
	if _, err := f.ReadAtAll(ctx, 0, all); err != nil {
		return err
	}
	for i := range n * rounds {
		if !bytes.Equal(all[i*block:(i+1)*block], content(i)) {
			return fmt.Errorf("block %d, of rank %d, is not what was written", i, i%n)
		}
	}
	if me == 0 {
		fmt.Printf("%x\n", sha256.Sum256(all))
	}
	return f.Close(ctx)
}

// transferMessage is the length of a message of programTransfer.
const transferMessage = 256 << 10

// programTransfer sends so many bytes from the first rank to the last one, which counts and
// compares them: each message must arrive once, whole, in its turn.
func programTransfer(ctx context.Context, c *mpi.Comm, size string) error {
	var total int64
	if _, err := fmt.Sscan(size, &total); err != nil {
		return err
	}
	last, me := c.Size()-1, c.Rank()
	random := rand.NewChaCha8([32]byte{1})
	const window = 8
	var want, bufs [window][]byte
	for i := range bufs {
		want[i], bufs[i] = make([]byte, transferMessage), make([]byte, transferMessage)
	}
	messages := int((total + transferMessage - 1) / transferMessage)
	for i := 0; i < messages && (me == 0 || me == last); i += window {
		var reqs []*mpi.Request
		k := min(window, messages-i)
		for j := range k {
			random.Read(want[j])
			var r *mpi.Request
			var err error
			if me == 0 {
				r, err = mpi.Isend(c, want[j], last, 0)
			} else {
				r, err = mpi.Irecv(c, bufs[j], 0, 0)
			}
			if err != nil {
				return err
			}
			reqs = append(reqs, r)
		}
		if _, err := mpi.Waitall(ctx, reqs...); err != nil {
			return err
		}
		for j := range k {
			if me == last && !bytes.Equal(want[j], bufs[j]) {
				return fmt.Errorf("message %d is not what was sent", i+j)
			}
		}
	}
	if me == last {
		// Nothing may come behind the last message.
		if _, found, err := mpi.Iprobe(c, 0, 0); err != nil || found {
			return fmt.Errorf("a message behind the last one, or %v", err)
		}
		return mpi.Send(ctx, c, []int{messages}, 0, 1)
	}
	if me == 0 {
		got := make([]int, 1)
		if _, err := mpi.Recv(ctx, c, got, last, 1); err != nil {
			return err
		}
		fmt.Printf("%d messages\n", got[0])
	}
	return nil
}
