package verbs

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp/sctptest"
)

// tornReads has a peer read a value of 16 KiB, again and again over a network that loses
// 3 % of packets, while its owner changes it in place: a version at both ends, and between
// them. It returns how many reads had one version at both ends and others between, and how
// many were told by two versions.
func tornReads(t *testing.T, reads int, access Access) (torn, told int) {
	synctest.Test(t, func(t *testing.T) {
		const size = 16384
		a, b, net := newLink(t, 7, sctptest.Link{Delay: 500 * time.Microsecond, Loss: 0.03})
		defer net.Close()
		defer a.tr.Close()
		defer b.tr.Close()
		qa, _ := connect(t, a, b, QPConfig{}, QPConfig{})
		src, dst := b.mr(size, access), a.mr(size, LocalWrite)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			tick := time.NewTicker(300 * time.Microsecond)
			defer tick.Stop()
			for v := uint64(1); ; v++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				for i := size - 8; i >= 0; i -= 8 {
					binary.NativeEndian.PutUint64(src.Bytes()[i:], v)
				}
			}
		}()
		for id := range uint64(reads) {
			if err := qa.PostSend(SendWR{ID: id, Op: OpRead, Flags: Signaled, SGL: []SGE{dst.Slice(0, size)}, Remote: src.Remote()}); err != nil {
				t.Fatal(err)
			}
			want(t, a.cq, id, StatusSuccess)
			version := func(i int) uint64 { return binary.NativeEndian.Uint64(dst.Bytes()[i:]) }
			if version(0) != version(size-8) {
				told++
				continue
			}
			for i := 8; i < size; i += 8 {
				if version(i) != version(0) {
					torn++
					break
				}
			}
		}
		close(stop)
		<-stopped
		qa.Close()
		<-qa.Done()
	})
	return torn, told
}

// Of a region with ReadSnapshot versions at both ends tell whether a read is whole, at
// whatever loss. Of another one they do not: what was lost is read again.
func TestReadSnapshotsAreNotTorn(t *testing.T) {
	if testenv.Race {
		t.Skip("reads while memory changes are data races, unless stores are atomic")
	}
	const reads = 1000
	if torn, told := tornReads(t, reads, RemoteRead|ReadSnapshot|LocalWrite); torn > 0 {
		t.Errorf("%d of %d reads are torn with ReadSnapshot (%d are told by their versions)", torn, reads, told)
	}
	if torn, _ := tornReads(t, reads, RemoteRead|LocalWrite); torn == 0 {
		t.Errorf("none of %d reads is torn without ReadSnapshot: the test does not tell", reads)
	} else {
		t.Logf("%d of %d reads are torn without ReadSnapshot", torn, reads)
	}
}
