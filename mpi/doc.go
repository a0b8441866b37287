// Package mpi is a message-passing interface in pure Go: ranks, communicators,
// tagged messages, collective operations and one-sided windows in the sense of
// the MPI standard, with typed slices for buffers and contexts for
// cancellation. Comments name the function of the standard that a Go function stands
// for, and cite MPI-4.1.
//
// # A job
//
// A job is n processes that run the same program. [Init] joins the job that a
// launcher started — "weft run", MPICH's mpiexec, Slurm's srun with PMI — and
// returns a [World]; a process started alone is a job of one. [RunLocal] runs n
// ranks as goroutines of one process, for tests and for programs that embed a
// parallel computation.
//
//	w, err := mpi.Init(ctx)
//	c := w.Comm()
//	if c.Rank() == 0 {
//		err = mpi.Send(ctx, c, []float64{3.14}, 1, 0)
//	} else {
//		x := make([]float64, 1)
//		_, err = mpi.Recv(ctx, c, x, 0, 0)
//	}
//	err = w.Finalize(ctx)
//
// # Messages
//
// [Send], [Ssend], [Recv], [Sendrecv] block; [Isend], [Issend] and [Irecv]
// start an operation and return a [Request]. Buffers are slices of any type
// that holds no pointers and are sent without being copied into another format.
// A receive names source and tag, or [AnySource] and [AnyTag]. Messages between
// two ranks that match the same receive are received in the order they were sent.
// All functions may be called from any goroutine (MPI_THREAD_MULTIPLE), and no
// message depends on a call of its receiver to make progress.
//
// # Blocking calls
//
// A function that takes a context blocks until the operation is complete for the
// caller, or the context ends, unless its comment says that it does not block. Its
// buffers belong to the call until it returns; those of a nonblocking operation belong
// to the operation until its Request is done. Any of these functions may return, apart
// from what its comment names: the error of the context, a [RankError]
// (ErrProcFailed) if a rank that is needed is gone, [ErrRevoked] after [Comm.Revoke],
// [ErrFreed] for what has been freed, [ErrAborted] when the job ends, and
// [ErrFinalized]. Test for them by errors.Is and errors.As.
//
// # Files
//
// [FileOpen] opens a file on all ranks: each sees the part of it that its view
// names, and reads and writes alone or together with the others. See [File].
//
// # Transports
//
// Over the network, messages travel on one SCTP association per pair of ranks.
// Tag and communicator select one of its streams, so that a lost packet holds
// up only messages that have to stay behind it. The order across tags that
// wildcard receives rely on is kept by sequence numbers; only such receives
// ever wait for an earlier message, and not even those on a communicator with
// the hint [InfoAllowOvertaking]. Short messages are sent at once, up to a
// bound of unread ones per peer; long ones, and those beyond the bound, when
// the receive has been posted, straight into its buffer.
//
// An association is told from a stranger's by a key that only the ranks of the
// job know; what is sent over it is not encrypted.
//
// Ranks of a job on one Linux host share memory, and their messages go through
// that; the association between them stays, for one-sided operations, to wake ranks
// that wait, and to see when one is gone. See [WithSharedMemory].
//
// # Failures
//
// Errors are returned, not fatal. An operation with a rank that is gone fails
// with a [RankError], one that is short of room with [ErrTruncate], and
// the job goes on if the program wants it to. [Comm.Revoke] gets the other
// members of a communicator out of what they wait for, [Comm.Agree] gives
// them a common view, and [Comm.Shrink] a communicator without the dead
// (user-level failure mitigation, ULFM). A job that is to outlive some of its
// ranks is started with `weft run -ft`, or [WithFaultTolerance]. [World.Abort]
// ends all ranks.
//
// # Environment
//
// Init reads these variables; options given in the program take precedence.
//
//	WEFT_TRANSPORT   hybrid (default), sctp or tcp
//	WEFT_EAGER       longest message sent without asking, in bytes, or with a
//	                 suffix K, M or G (default 256K)
//	WEFT_RENDEZVOUS  how longer ones travel, message (default), write or read:
//	                 see WithRendezvous
//	WEFT_STREAMS     streams that the tags are spread over (default 10)
//	WEFT_UNEXPECTED  memory for messages that came before their receives
//	                 (default 64M)
//	WEFT_SPIN        how long a waiting goroutine polls, with nothing coming,
//	                 before it parks, as a duration; 0 for not at all
//	WEFT_SHARED      0 for SCTP between ranks on one host, too, instead of
//	                 memory that they share (default 1, with the transport hybrid)
//	WEFT_ADDRS       local addresses to use, as ip or ip:port, separated by
//	                 commas; several make a multihomed rank
//	WEFT_SILENCE     how long a peer may not answer before it is taken for
//	                 dead (default 1m, with WEFT_FT=1 3s)
//	WEFT_FT          1 if the job is to outlive some of its ranks
//	WEFT_SINGLETON   1 if ranks that a launcher without PMI-1 starts are to be
//	                 jobs of one rank each, instead of ErrLauncher
//	WEFT_NAMESERVER  name service of several jobs, as `weft nameserver` prints it
//	WEFT_CAPTURE     file to record all sent datagrams in
//	WEFT_PROFILE     file to write sums of all calls to, as JSON, twice a second
//	                 and at Finalize (see ProfileReport)
//	WEFT_TRACE       file to write all calls to, in the format of the Chrome
//	                 trace viewer (see Tracer)
//
// Init removes the last three from the environment: child processes must not write
// into the same files.
//
// The info keys [InfoEager], [InfoRendezvous] and [InfoStreams] give a communicator
// an eager limit, a rendezvous method and a number of streams of its own.
package mpi
