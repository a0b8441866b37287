// Options of sockets.

#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *opts[MAX_OPTS];
int nopts;

static void value(sock s, const char *name, int opt, uint32_t v) {
	struct sctp_assoc_value av = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = v};
	if (s_set(s, IPPROTO_SCTP, opt, &av, sizeof av) < 0)
		say("error opt %s: %s", name, strerror(errno));
}

static void number(sock s, const char *name, int level, int opt, int v) {
	if (s_set(s, level, opt, &v, sizeof v) < 0)
		say("error opt %s: %s", name, strerror(errno));
}

// option applies one line of opt to a socket.
void option(sock s, const char *line) {
	char name[32] = "", text[128] = "";
	unsigned x = 0, y = 0, z = 0;
	sscanf(line, "%31s %127s", name, text);
	sscanf(line, "%*s %u %u %u", &x, &y, &z);
	if (!strcmp(name, "streams")) { // OUT IN
		struct sctp_initmsg m = {.sinit_num_ostreams = x, .sinit_max_instreams = y};
		if (s_set(s, IPPROTO_SCTP, SCTP_INITMSG, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "rto")) { // INITIAL MIN MAX
		struct sctp_rtoinfo m = {.srto_initial = x, .srto_min = y, .srto_max = z};
		if (s_set(s, IPPROTO_SCTP, SCTP_RTOINFO, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "maxrtx")) { // ASSOCIATION
		struct sctp_assocparams m = {.sasoc_asocmaxrxt = x};
		if (s_set(s, IPPROTO_SCTP, SCTP_ASSOCINFO, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "heartbeat")) { // MS PATHMAXRTX
		struct sctp_paddrparams m = {.spp_hbinterval = x, .spp_pathmaxrxt = y, .spp_flags = SPP_HB_ENABLE};
		m.spp_address.ss_family = AF_INET;
		if (s_set(s, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "adaptation")) {
		struct sctp_setadaptation m = {.ssb_adaptation_ind = x};
		if (s_set(s, IPPROTO_SCTP, SCTP_ADAPTATION_LAYER, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "encaps")) { // remote UDP port
		struct sctp_udpencaps m = {.sue_port = htons(x)};
		m.sue_address.ss_family = AF_INET;
		if (s_set(s, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "authchunk")) {
		struct sctp_authchunk m = {.sauth_chunk = x};
		if (s_set(s, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &m, sizeof m) < 0)
			say("error opt %s: %s", name, strerror(errno));
	} else if (!strcmp(name, "key")) { // NUMBER KEY, and make it the active one
		char key[100] = "";
		sscanf(line, "%*s %*u %99s", key);
		size_t n = strlen(key);
		struct sctp_authkey *k = must(calloc(1, sizeof *k + n));
		k->sca_keynumber = x;
		k->sca_keylength = n;
		memcpy(k->sca_key, key, n);
		struct sctp_authkeyid id = {.scact_keynumber = x};
		if (s_set(s, IPPROTO_SCTP, SCTP_AUTH_KEY, k, sizeof *k + n) < 0 ||
		    s_set(s, IPPROTO_SCTP, SCTP_AUTH_ACTIVE_KEY, &id, sizeof id) < 0)
			say("error opt %s: %s", name, strerror(errno));
		free(k);
	} else if (!strcmp(name, "buffer")) { // SEND RECEIVE
#ifdef PEER_USRSCTP
		number(s, name, SOL_SOCKET, SO_SNDBUF, x);
		number(s, name, SOL_SOCKET, SO_RCVBUF, y);
#else
		number(s, name, SOL_SOCKET, SO_SNDBUFFORCE, x);
		number(s, name, SOL_SOCKET, SO_RCVBUFFORCE, y);
#endif
	} else if (!strcmp(name, "nodelay")) {
		number(s, name, IPPROTO_SCTP, SCTP_NODELAY, x);
	} else if (!strcmp(name, "autoasconf")) {
		number(s, name, IPPROTO_SCTP, SCTP_AUTO_ASCONF, x);
	} else if (!strcmp(name, "idata")) { // 0 or 1
		if (x)
			number(s, name, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, 2);
		value(s, name, SCTP_INTERLEAVING_SUPPORTED, x);
	} else if (!strcmp(name, "pr")) {
		value(s, name, SCTP_PR_SUPPORTED, x);
	} else if (!strcmp(name, "auth")) {
		value(s, name, SCTP_AUTH_SUPPORTED, x);
	} else if (!strcmp(name, "asconf")) {
		value(s, name, SCTP_ASCONF_SUPPORTED, x);
	} else if (!strcmp(name, "ecn")) {
		value(s, name, SCTP_ECN_SUPPORTED, x);
	} else if (!strcmp(name, "reconfig")) {
		value(s, name, SCTP_RECONFIG_SUPPORTED, x);
		value(s, name, SCTP_ENABLE_STREAM_RESET, x ? 7 : 0);
	} else if (!strcmp(name, "maxburst")) {
		value(s, name, SCTP_MAX_BURST, x);
	} else if (!strcmp(name, "maxseg")) {
		value(s, name, SCTP_MAXSEG, x);
	} else {
		say("error opt %s: unknown", name);
	}
}
