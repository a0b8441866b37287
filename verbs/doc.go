// Package verbs is an RDMA device in software: memory regions, queue pairs,
// completion queues and a connection manager, with the names that users of RDMA
// hardware know, above iWARP (packages rdmap and ddp) over SCTP (RFC 5043) or TCP
// (RFC 5044).
//
// A Device is opened on an sctp.Transport. A protection domain (PD) holds
// memory regions (MR) and queue pairs (QP). A QP is connected to one of another
// device with Connect there and Listener.Accept here; then PostSend starts sends,
// RDMA writes and reads, and atomic operations, and PostRecv provides buffers for
// the peer's sends. Completion queues (CQ) report the ends of these work requests.
// ConnectTCP and ListenTCP connect over TCP, ConnectRelay through gateways to a process at another site.
//
// The names of libibverbs and librdmacm, and where they are here:
//
//	ibv_open_device, ibv_query_device       Open, Device.Query
//	ibv_alloc_pd                            Device.AllocPD
//	ibv_reg_mr, _iova, ibv_rereg_mr         PD.Register, RegisterAt, MR.Reregister
//	ibv_alloc_mw, IBV_WR_BIND_MW            PD.AllocMW, OpBindMW
//	ib_alloc_mr, IB_WR_REG_MR (kernel)      PD.AllocMR, OpFastRegister
//	IBV_WR_LOCAL_INV, ibv_inc_rkey          OpLocalInvalidate, MW.Renew, MR.Renew
//	ibv_create_cq, ibv_resize_cq            Device.NewCQ, CQ.Resize
//	ibv_poll_cq, ibv_req_notify_cq          CQ.Poll (CQ.Wait blocks), CQ.Notify
//	ibv_create_comp_channel                 Device.NewCompChannel
//	ibv_create_srq, ibv_modify_srq          PD.NewSRQ, SRQ.SetLimit, SRQ.Resize
//	ibv_create_qp, ibv_modify_qp, _query_qp PD.NewQP, QP.Modify, QP.Query
//	ibv_post_send, ibv_post_recv            QP.PostSend, QP.PostRecv, SRQ.PostRecv
//	ibv_get_async_event                     Device.GetEvent
//	rdma_create_event_channel, rdma_cm_id   Device.NewCMChannel, CMID
//
// All objects are closed with Close, which returns ErrBusy while others use them.
// Package rconn has a blocking connection, in the manner of rsockets, on top.
//
// A peer accesses a region by its STag, within its bounds and the rights that it was
// registered with, through queue pairs of its protection domain. The process that owns the
// memory is not involved: the goroutine that receives the packets carries out writes and
// reads. A violation ends that queue pair, and no other, with a Terminate message, and
// nothing is written.
//
// Completion of a send or write means that its memory may be used again, not
// that the peer has seen the data. To know that writes have arrived, read
// something through the same queue pair, if only zero bytes: a read is answered
// after all that was posted before it has been placed (RFC 5040, Section 5.5,
// rule 12). A later receive of the peer completes after all earlier writes have
// been placed, too (rule 10).
//
// Every message needs a posted receive, of the queue pair or of its shared
// receive queue (SRQ). A message to a queue pair that has none ends the connection,
// so consumers agree on how many messages may be under way; a message that finds a
// shared receive queue empty waits: see SRQ.
//
// The right to a region can be given for a while, and to one peer only: bind a
// memory window (MW), or register a region of AllocMR, by a work request, and
// invalidate it by another, or have the peer do so with the message that says it
// is done (OpSendInvalidate). These STags are valid on one queue pair. After an
// invalidation has completed, peers cannot change the memory. MR.Drain waits until it may
// be changed locally after peers have read it.
//
// Conditions that belong to no work request are events of the device (GetEvent): queue
// pairs that end in error, queues that overflow or run low, peers that come and go.
//
// Posting and completing work requests does not allocate.
package verbs
