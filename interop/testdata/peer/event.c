// What the stack tells of the association.

#include "peer.h"

#include <stdio.h>
#include <string.h>

static const char *address(const void *ss, char *b, size_t n) {
	const struct sockaddr *sa = ss;
	const void *ip = sa->sa_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)ss)->sin6_addr
						   : (const void *)&((const struct sockaddr_in *)ss)->sin_addr;
	if (!inet_ntop(sa->sa_family, ip, b, n))
		snprintf(b, n, "?");
	return b;
}

void notification(const uint8_t *p, size_t n) {
	union sctp_notification u;
	memset(&u, 0, sizeof u);
	memcpy(&u, p, n < sizeof u ? n : sizeof u);
	char b[INET6_ADDRSTRLEN];
	const char *s;
	switch (u.sn_header.sn_type) {
	case SCTP_ASSOC_CHANGE:
		switch (u.sn_assoc_change.sac_state) {
		case SCTP_COMM_UP: s = "comm_up"; break;
		case SCTP_COMM_LOST: s = "comm_lost"; break;
		case SCTP_RESTART:
			s = "restart";
			restart_numbers();
			break;
		case SCTP_SHUTDOWN_COMP: s = "shutdown_comp"; break;
		default: s = "cant_start";
		}
		say("event %s error=%u", s, u.sn_assoc_change.sac_error);
		break;
	case SCTP_PEER_ADDR_CHANGE:
		switch (u.sn_paddr_change.spc_state) {
		case SCTP_ADDR_AVAILABLE: s = "up"; break;
		case SCTP_ADDR_UNREACHABLE: s = "down"; break;
		case SCTP_ADDR_REMOVED: s = "removed"; break;
		case SCTP_ADDR_ADDED: s = "added"; break;
		case SCTP_ADDR_MADE_PRIM: s = "primary"; break;
		case SCTP_ADDR_CONFIRMED: s = "confirmed"; break;
		default: s = "changed";
		}
		say("path %s %s", s, address(&u.sn_paddr_change.spc_aaddr, b, sizeof b));
		break;
	case SCTP_SHUTDOWN_EVENT: say("event shutdown"); break;
	case SCTP_REMOTE_ERROR: say("event remote_error cause=%u", ntohs(u.sn_remote_error.sre_error)); break;
	case SCTP_ADAPTATION_INDICATION: say("adaptation %u", u.sn_adaptation_event.sai_adaptation_ind); break;
	case SCTP_STREAM_RESET_EVENT: {
		char list[200] = "";
		int len = 0, streams = (u.sn_strreset_event.strreset_length - 12) / 2;
		for (int i = 0; i < streams && i < 8; i++) {
			uint16_t sid;
			memcpy(&sid, p + 12 + 2 * i, 2);
			len += snprintf(list + len, sizeof list - len, " %u", sid);
			if (u.sn_header.sn_flags & SCTP_STREAM_RESET_INCOMING_SSN)
				a.next_in[sid] = 0;
			if (u.sn_header.sn_flags & SCTP_STREAM_RESET_OUTGOING_SSN)
				a.next_out[sid] = 0;
		}
		say("reset%s%s%s%s%s", u.sn_header.sn_flags & SCTP_STREAM_RESET_INCOMING_SSN ? " in" : "",
		    u.sn_header.sn_flags & SCTP_STREAM_RESET_OUTGOING_SSN ? " out" : "",
		    u.sn_header.sn_flags & SCTP_STREAM_RESET_DENIED ? " denied" : "",
		    u.sn_header.sn_flags & SCTP_STREAM_RESET_FAILED ? " failed" : "", list);
		break;
	}
	case SCTP_ASSOC_RESET_EVENT:
		restart_numbers();
		say("resetassoc flags=%u", u.sn_header.sn_flags);
		break;
	case SCTP_STREAM_CHANGE_EVENT:
		say("streams in=%u out=%u flags=%u", u.sn_strchange_event.strchange_instrms, u.sn_strchange_event.strchange_outstrms,
		    u.sn_header.sn_flags);
		break;
	case SCTP_SEND_FAILED_EVENT: say("event send_failed"); break;
	case SCTP_PARTIAL_DELIVERY_EVENT: say("event partial_aborted"); break;
	case SCTP_SENDER_DRY_EVENT: break;
	case SCTP_AUTHENTICATION_EVENT: break;
	default: say("event type=%u", u.sn_header.sn_type);
	}
}
