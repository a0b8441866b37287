package mpi

import "github.com/weftstack/weft/mpi/internal/transport/shm"

// WithSharedMemory sets whether ranks on one host exchange the messages of TransportHybrid through
// shared memory. Init does so by default (WEFT_SHARED), RunLocal does not. It needs Linux, and
// processes of one user that see the same network and processes; otherwise, and with [WithCapture],
// messages go over SCTP. Ranks may differ.
func WithSharedMemory(on bool) Option {
	return func(o *options) error {
		o.Shared = on
		return nil
	}
}

// MaxSharedRanks bounds the ranks of a host that share memory. If there are more, all of them use
// SCTP.
const MaxSharedRanks = shm.MaxRanks
