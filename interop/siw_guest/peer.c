/* A peer on libibverbs and librdmacm that does what the lines on its standard
 * input say, and answers each with one line: "ok ...", or "error ..." with what
 * failed. One process has one protection domain, one queue pair, one completion
 * queue and one buffer that all work requests use.
 *
 *   mr SIZE RIGHTS            -> ok RKEY ADDRESS   rights: r read, w write
 *   mr2 SIZE RIGHTS           -> the same for a second region, of another
 *                                protection domain
 *   fill OFFSET LENGTH SEED      fills the buffer with a pattern
 *   sum OFFSET LENGTH         -> ok FNV-1a of that part of the buffer, hex
 *   listen ADDRESS PORT
 *   request                   -> ok PRIVATE IRD ORD of the next connection
 *                                request, private data in hex ("-": none)
 *   accept IRD ORD PRIVATE       accepts it
 *   reject PRIVATE               rejects it
 *   resolve ADDRESS PORT         prepares to connect
 *   connect IRD ORD PRIVATE   -> ok PRIVATE IRD ORD of the reply
 *   recv ID OFFSET LENGTH
 *   send ID OFFSET LENGTH | sendse ID OFFSET LENGTH | sendinv ID OFFSET LENGTH RKEY
 *   write ID OFFSET LENGTH RKEY ADDRESS | read ID OFFSET LENGTH RKEY ADDRESS
 *   poll MILLISECONDS         -> ok ID STATUS OPCODE LENGTH | error none
 *   event MILLISECONDS        -> ok NAME STATUS of a connection event
 *   async MILLISECONDS        -> ok NAME of an asynchronous event of the device
 *   disconnect
 *
 * All numbers but those that are named hex are decimal or 0x hex.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { max_args = 8, wait_ms = 120000, depth = 512, max_private = 255 };

static struct rdma_event_channel *events;
static struct ibv_context *device;
static struct ibv_pd *pd, *other_pd;
static struct ibv_cq *cq;
static struct rdma_cm_id *id, *listener;
static struct ibv_mr *mr, *other_mr;
static unsigned char *buffer;

static void say(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	putchar('\n');
	fflush(stdout);
}

static void failed(const char *what) { say("error %s: %s", what, strerror(errno)); }

static unsigned long long number(const char *s) { return s ? strtoull(s, NULL, 0) : 0; }

/* readable waits until a descriptor can be read. */
static int readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return poll(&p, 1, ms) == 1;
}

/* next_event waits for a connection event, which the caller acknowledges. */
static struct rdma_cm_event *next_event(int ms)
{
	struct rdma_cm_event *e;
	if (!readable(events->fd, ms) || rdma_get_cm_event(events, &e))
		return NULL;
	return e;
}

static void hex(char *to, const unsigned char *from, int n)
{
	if (n == 0)
		strcpy(to, "-");
	for (int i = 0; i < n; i++)
		sprintf(to + 2 * i, "%02x", from[i]);
}

static int unhex(unsigned char *to, const char *from)
{
	int n = 0;
	unsigned int byte;
	if (!from || strcmp(from, "-") == 0)
		return 0;
	for (; n < max_private && sscanf(from + 2 * n, "%2x", &byte) == 1; n++)
		to[n] = byte;
	return n;
}

static int setup(void)
{
	int n;
	struct ibv_context **devices = rdma_get_devices(&n);
	if (!devices || n < 1)
		return -1;
	device = devices[0];
	events = rdma_create_event_channel();
	pd = ibv_alloc_pd(device);
	other_pd = ibv_alloc_pd(device);
	cq = ibv_create_cq(device, 2 * depth, NULL, NULL, 0);
	return events && pd && other_pd && cq ? 0 : -1;
}

static int make_qp(struct rdma_cm_id *of)
{
	struct ibv_qp_init_attr a = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	a.cap.max_send_wr = a.cap.max_recv_wr = depth;
	a.cap.max_send_sge = a.cap.max_recv_sge = 1;
	return rdma_create_qp(of, pd, &a);
}

static void params(struct rdma_conn_param *p, unsigned char *private, char *ird, char *ord, char *text)
{
	memset(p, 0, sizeof *p);
	p->private_data = private;
	p->private_data_len = unhex(private, text);
	p->responder_resources = number(ird);
	p->initiator_depth = number(ord);
}

static void do_mr(char **a, struct ibv_pd *domain, struct ibv_mr **result)
{
	int access = IBV_ACCESS_LOCAL_WRITE;
	size_t size = number(a[1]);
	void *memory = aligned_alloc(4096, (size + 4095) & ~4095ul);
	if (a[2] && strchr(a[2], 'r'))
		access |= IBV_ACCESS_REMOTE_READ;
	if (a[2] && strchr(a[2], 'w'))
		access |= IBV_ACCESS_REMOTE_WRITE;
	memset(memory, 0, size);
	*result = ibv_reg_mr(domain, memory, size, access);
	if (!*result) {
		failed("ibv_reg_mr");
		return;
	}
	if (domain == pd)
		buffer = memory;
	say("ok 0x%x 0x%llx", (*result)->rkey, (unsigned long long)(uintptr_t)memory);
}

static int address(struct sockaddr_in *to, const char *host, const char *port)
{
	memset(to, 0, sizeof *to);
	to->sin_family = AF_INET;
	to->sin_port = htons(number(port));
	return host && inet_pton(AF_INET, host, &to->sin_addr) == 1 ? 0 : -1;
}

static void do_listen(char **a)
{
	struct sockaddr_in to;
	if (address(&to, a[1], a[2]) || rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&to) || rdma_listen(listener, 8))
		failed("listen");
	else
		say("ok");
}

/* forget frees the connection before. */
static void forget(void)
{
	struct ibv_wc wc;
	if (!id)
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
	id = NULL;
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
}

/* do_request takes the next request and makes its queue pair, so that receives
 * can be posted before it is accepted. */
static void do_request(void)
{
	struct rdma_cm_event *e;
	char text[2 * max_private + 3];
	while ((e = next_event(wait_ms)) && e->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		rdma_ack_cm_event(e); /* of the connection before */
	if (!e) {
		say("error no request");
		return;
	}
	forget();
	id = e->id;
	hex(text, e->param.conn.private_data, e->param.conn.private_data_len);
	int ird = e->param.conn.responder_resources, ord = e->param.conn.initiator_depth;
	rdma_ack_cm_event(e);
	if (make_qp(id))
		failed("rdma_create_qp");
	else
		say("ok %s %d %d", text, ird, ord);
}

static void await(enum rdma_cm_event_type want)
{
	struct rdma_cm_event *e = next_event(wait_ms);
	char text[2 * max_private + 3] = "-";
	if (!e) {
		say("error no event");
		return;
	}
	if (e->param.conn.private_data)
		hex(text, e->param.conn.private_data, e->param.conn.private_data_len);
	if (e->event == want)
		say("ok %s %d %d", text, e->param.conn.responder_resources, e->param.conn.initiator_depth);
	else
		say("error %s %d %s", rdma_event_str(e->event), e->status, text);
	rdma_ack_cm_event(e);
}

static void do_accept(char **a)
{
	struct rdma_conn_param p;
	unsigned char private[max_private];
	params(&p, private, a[1], a[2], a[3]);
	if (!id || rdma_accept(id, &p))
		failed("rdma_accept");
	else
		await(RDMA_CM_EVENT_ESTABLISHED);
}

static void do_reject(char **a)
{
	unsigned char private[max_private];
	int n = unhex(private, a[1]);
	if (!id || rdma_reject(id, private, n))
		failed("rdma_reject");
	else
		say("ok");
}

/* do_resolve prepares a connection and its queue pair. */
static void do_resolve(char **a)
{
	struct sockaddr_in to;
	struct rdma_cm_event *e;
	forget();
	if (address(&to, a[1], a[2]) || rdma_create_id(events, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, wait_ms)) {
		failed("rdma_resolve_addr");
		return;
	}
	for (int step = 0; step < 2; step++) {
		enum rdma_cm_event_type want = step ? RDMA_CM_EVENT_ROUTE_RESOLVED : RDMA_CM_EVENT_ADDR_RESOLVED;
		e = next_event(wait_ms);
		if (!e || e->event != want) {
			say("error %s", e ? rdma_event_str(e->event) : "no event");
			return;
		}
		rdma_ack_cm_event(e);
		if (step == 0 && rdma_resolve_route(id, wait_ms)) {
			failed("rdma_resolve_route");
			return;
		}
	}
	if (make_qp(id))
		failed("rdma_create_qp");
	else
		say("ok");
}

static void do_connect(char **a)
{
	struct rdma_conn_param p;
	unsigned char private[max_private];
	params(&p, private, a[1], a[2], a[3]);
	if (!id || rdma_connect(id, &p))
		failed("rdma_connect");
	else
		await(RDMA_CM_EVENT_ESTABLISHED);
}

static void do_post(char **a)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buffer + number(a[2]), .length = number(a[3]), .lkey = mr ? mr->lkey : 0 };
	struct ibv_send_wr wr = { .wr_id = number(a[1]), .sg_list = &sge, .num_sge = sge.length > 0 }, *bad;
	struct ibv_recv_wr rr = { .wr_id = wr.wr_id, .sg_list = &sge, .num_sge = wr.num_sge }, *bad_rr;
	if (!id || !id->qp) {
		say("error no queue pair");
		return;
	}
	if (strcmp(a[0], "recv") == 0) {
		errno = ibv_post_recv(id->qp, &rr, &bad_rr);
	} else {
		wr.opcode = strcmp(a[0], "write") == 0 ? IBV_WR_RDMA_WRITE : strcmp(a[0], "read") == 0 ? IBV_WR_RDMA_READ :
			    strcmp(a[0], "sendinv") == 0 ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND;
		wr.send_flags = IBV_SEND_SIGNALED | (strcmp(a[0], "sendse") == 0 ? IBV_SEND_SOLICITED : 0);
		if (wr.opcode == IBV_WR_SEND_WITH_INV)
			wr.invalidate_rkey = number(a[4]);
		wr.wr.rdma.rkey = number(a[4]);
		wr.wr.rdma.remote_addr = wr.opcode == IBV_WR_SEND_WITH_INV ? 0 : number(a[5]);
		errno = ibv_post_send(id->qp, &wr, &bad);
	}
	if (errno)
		failed("post");
	else
		say("ok");
}

static long long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

static void do_poll(int ms)
{
	struct ibv_wc wc;
	struct timespec pause = { .tv_nsec = 200000 };
	for (long long end = now_ms() + ms;;) {
		int n = ibv_poll_cq(cq, 1, &wc);
		if (n < 0) {
			failed("ibv_poll_cq");
			return;
		}
		if (n == 1) {
			say("ok %llu %d %d %u", (unsigned long long)wc.wr_id, wc.status, wc.opcode, wc.status ? 0 : wc.byte_len);
			return;
		}
		if (now_ms() >= end)
			break;
		nanosleep(&pause, NULL);
	}
	say("error none");
}

static void do_event(int ms)
{
	struct rdma_cm_event *e = next_event(ms);
	if (!e) {
		say("error none");
		return;
	}
	say("ok %s %d", rdma_event_str(e->event), e->status);
	rdma_ack_cm_event(e);
}

static void do_async(int ms)
{
	struct ibv_async_event e;
	if (!readable(device->async_fd, ms) || ibv_get_async_event(device, &e)) {
		say("error none");
		return;
	}
	say("ok %s", ibv_event_type_str(e.event_type));
	ibv_ack_async_event(&e);
}

static void do_sum(char **a)
{
	unsigned long long h = 0xcbf29ce484222325ull;
	const unsigned char *p = buffer + number(a[1]);
	for (size_t n = number(a[2]); n > 0; n--)
		h = (h ^ *p++) * 0x100000001b3ull;
	say("ok %016llx", h);
}

static void do_fill(char **a)
{
	unsigned char *p = buffer + number(a[1]);
	size_t n = number(a[2]);
	unsigned int seed = number(a[3]);
	for (size_t i = 0; i < n; i++)
		p[i] = seed + i * 7 + (i >> 8) * 13;
	say("ok");
}

int main(void)
{
	char line[4096];
	if (setup()) {
		failed("setup");
		return 1;
	}
	while (fgets(line, sizeof line, stdin)) {
		char *a[max_args] = { 0 };
		int n = 0;
		for (char *word = strtok(line, " \n"); word && n < max_args; word = strtok(NULL, " \n"))
			a[n++] = word;
		if (n == 0)
			continue;
		else if (strcmp(a[0], "mr") == 0)
			do_mr(a, pd, &mr);
		else if (strcmp(a[0], "mr2") == 0)
			do_mr(a, other_pd, &other_mr);
		else if (strcmp(a[0], "fill") == 0)
			do_fill(a);
		else if (strcmp(a[0], "sum") == 0)
			do_sum(a);
		else if (strcmp(a[0], "listen") == 0)
			do_listen(a);
		else if (strcmp(a[0], "request") == 0)
			do_request();
		else if (strcmp(a[0], "accept") == 0)
			do_accept(a);
		else if (strcmp(a[0], "reject") == 0)
			do_reject(a);
		else if (strcmp(a[0], "resolve") == 0)
			do_resolve(a);
		else if (strcmp(a[0], "connect") == 0)
			do_connect(a);
		else if (strcmp(a[0], "poll") == 0)
			do_poll(number(a[1]));
		else if (strcmp(a[0], "event") == 0)
			do_event(number(a[1]));
		else if (strcmp(a[0], "async") == 0)
			do_async(number(a[1]));
		else if (strcmp(a[0], "disconnect") == 0 && id)
			say(rdma_disconnect(id) ? "error disconnect" : "ok");
		else if (strstr("recv send sendse sendinv write read", a[0]))
			do_post(a);
		else
			say("error unknown command %s", a[0]);
	}
	return 0;
}
