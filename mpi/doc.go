// Package mpi is a message-passing interface in pure Go: ranks, communicators,
// tagged messages, collective operations, one-sided windows and parallel files in
// the sense of the MPI standard, with typed slices for buffers and contexts for
// cancellation. Comments name the function of the standard that a Go function stands
// for, and cite MPI-4.1.
//
// # Jobs
//
// A job is n processes that run the same program. [Init] joins the job that a
// launcher started — "weft run", MPICH's mpiexec, Slurm's srun with PMI — and
// returns a [World]; a process started alone is a job of one rank. [RunLocal] runs n
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
// [Send], [Ssend], [Recv] and [Sendrecv] block; [Isend], [Issend] and [Irecv] start
// an operation and return a [Request]. Buffers are slices of any type that holds no
// pointers, and are sent without conversion to another format. A receive names source
// and tag, or [AnySource] and [AnyTag]. Messages between two ranks that match the same
// receive are received in the order in which they were sent. All functions may be called
// from any goroutine (MPI_THREAD_MULTIPLE), and a message makes progress even if its
// receiver makes no calls.
//
// # Collectives, windows and files
//
// [Barrier], [Bcast], [Allreduce] and the other collectives are called by all ranks of
// a [Comm]. A [Win] is memory that other ranks read and write by one-sided operations:
// see [WinCreate] and [WinAllocate]. A [File] is opened by all ranks with [FileOpen]:
// each sees the part of it that its view selects, and reads and writes alone or together
// with the others.
//
// # Blocking calls
//
// A function that takes a context blocks until the operation is complete for the caller
// or the context ends, unless its comment says otherwise. Its buffers belong to the call
// until it returns; those of a nonblocking operation belong to the operation until its
// [Request] is done. Besides the errors that its comment names, such a function may
// return the error of the context, a [RankError] (ErrProcFailed) if a rank that it needs
// has failed, [ErrRevoked] after [Comm.Revoke], [ErrFreed] after [Comm.Free], [ErrWindow]
// after [Win.Free], [ErrFile] after [File.Close], [ErrAborted] when the job ends, and
// [ErrFinalized]. Test for them by errors.Is and errors.As.
//
// # Transports
//
// Over the network, messages travel on one SCTP association per pair of ranks. Tag and
// communicator select one of its streams, so a lost packet delays only the messages of
// its stream. Sequence numbers keep the order across tags that receives with wildcards
// rely on; only such receives ever wait for an earlier message, and not even those on a
// communicator with the hint [InfoAllowOvertaking].
//
// Short messages are sent eagerly, up to a bound of unmatched bytes per peer. Longer
// ones, and those beyond the bound, use a rendezvous protocol: the body is sent after
// the receive has been posted, directly into its buffer. See [WithRendezvous].
//
// Each association begins with a handshake by which both ranks prove that they know the
// key of the job. Messages are not encrypted.
//
// Ranks of a job on one Linux host exchange messages through shared memory. The
// association between them stays: for one-sided operations, to wake ranks that wait, and
// to detect failures. See [WithSharedMemory].
//
// # Failures
//
// Errors are returned, not fatal. An operation with a rank that has failed returns a
// [RankError], a receive with too short a buffer [ErrTruncate], and the program decides
// whether the job goes on. [Comm.Revoke] interrupts the operations of the other members
// of a communicator, [Comm.Agree] gives the survivors a common view, and [Comm.Shrink] a
// communicator of the survivors (user-level failure mitigation, ULFM). A job that
// survives the failure of ranks is started with `weft run -ft` or
// [WithFaultTolerance]. [World.Abort] ends all ranks.
//
// # Environment
//
// Init reads these variables; options given in the program take precedence.
//
//	WEFT_TRANSPORT   hybrid (default), sctp or tcp
//	WEFT_EAGER       eager limit: longest message sent without a rendezvous, in
//	                 bytes, or with a suffix K, M or G (default 256K)
//	WEFT_RENDEZVOUS  rendezvous method: message (default), write or read;
//	                 see WithRendezvous
//	WEFT_STREAMS     streams that the tags are spread over (default 10)
//	WEFT_UNEXPECTED  memory for messages that arrive before their receives
//	                 (default 64M)
//	WEFT_SPIN        how long a waiting goroutine polls without a result
//	                 before it parks, as a duration; 0 for no polling
//	WEFT_SHARED      0 for SCTP instead of shared memory between ranks on one
//	                 host (default 1, with the transport hybrid)
//	WEFT_ADDRS       local addresses to use, as ip or ip:port, separated by
//	                 commas; several make a multihomed rank
//	WEFT_SITE        name of the site that the host is at; see WithSite
//	WEFT_SITES       sites file, by which ranks of different sites reach each other
//	                 through gateways, if another launcher than weft run starts them
//	WEFT_SILENCE     how long a peer may not answer before it is taken for
//	                 failed (default 1m, with WEFT_FT=1 3s)
//	WEFT_FT          1 if the job survives the failure of ranks
//	WEFT_SINGLETON   1 if each rank that a launcher without PMI-1 starts is a
//	                 job of one rank; otherwise it gets ErrLauncher
//	WEFT_NAMESERVER  name service of several jobs, as `weft nameserver` prints it
//	WEFT_CAPTURE     file to record all sent datagrams in
//	WEFT_PROFILE     file to write sums of all calls to, as JSON, twice a second
//	                 and at Finalize (see ProfileReport)
//	WEFT_TRACE       file to write all calls to, in the format of the Chrome
//	                 trace viewer (see Tracer)
//
// Init removes the last three from the environment, because child processes must not
// write to the same files.
//
// The info keys [InfoEager], [InfoRendezvous] and [InfoStreams] set the eager limit, the
// rendezvous method and the number of streams of one communicator.
package mpi
