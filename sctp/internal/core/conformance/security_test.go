package conformance

import (
	"strings"
	"testing"
)

// attack is a hostile script, and the class of vulnerability that it stands for:
// where known, with an advisory about another stack that had it.
type attack struct {
	name, class, script string
}

// runAttacks runs every attack as a script of its own.
func runAttacks(t *testing.T, list []attack) {
	for _, a := range list {
		t.Run(a.name, func(t *testing.T) {
			scripts, err := parse(a.name, "== 0000/1-1\n"+a.script)
			if err != nil {
				t.Fatal(err)
			}
			if err := newRunner(t, a.name).run(scripts[0]); err != nil {
				t.Errorf("%s: %v", a.class, err)
			}
		})
	}
}

// TestSecurityTags has somebody who cannot see the packets try to change or end
// an association.
func TestSecurityTags(t *testing.T) {
	const blind = "CVE-2021-3772: invalid chunks or a wrong verification tag end an association"
	var list []attack
	for _, chunk := range []string{"ABORT", "ABORT T", "SHUTDOWN cum=L-1", "SHUTDOWN ACK", "SHUTDOWN COMPLETE", "SHUTDOWN COMPLETE T",
		"SACK cum=L+100", "DATA BE tsn=P", "DATA BE tsn=P len=0", "I-DATA BE tsn=P", "HEARTBEAT", "ERROR {stale 1}", "COOKIE ACK",
		"FORWARD-TSN cum=P+5", "RE-CONFIG {tsnreset req=P}", "ASCONF {delip 10.0.0.2}", "AUTH", "INIT ACK {cookie}", "COOKIE ECHO len=200",
		"CHUNK type=0x7f len=8", "CHUNK type=0xff len=8", "ECNE tsn=L", "PAD"} {
		for _, tag := range []string{"LT+1", "PT", "0", "LT-1"} {
			if tag == "PT" && strings.HasSuffix(chunk, " T") {
				continue // that is the reflected tag
			}
			list = append(list, attack{chunk + " tag=" + tag, blind, `
				peer ext=pr,reconfig
				setup established
				> [tag=` + tag + `] ` + chunk + `
				state ESTABLISHED
				norecv
				stat InFlight=0
				path 0 udp=9899
				timer none
				> DATA BE tsn=P
				< SACK cum=P`})
		}
	}
	list = append(list,
		attack{"bad INIT leaves the association alone", blind, `
			setup established
			> INIT _length=10
			> INIT out=0
			drain
			> INIT {hex 00050003}
			drain
			> INIT tag=0
			state ESTABLISHED
			send
			< DATA tsn=L`},
		attack{"spoofed source with the right tag", "RFC 5062, Section 2: address camping", `
			setup established
			> [from=10.0.0.66] DATA BE tsn=P
			drop address
			> [from=10.0.0.66] SHUTDOWN cum=L-1
			state ESTABLISHED
			paths 1`},
		attack{"port moves only behind the tag", "RFC 6951, Section 5.4: spoofed rewriting of the UDP port", `
			setup established
			> [tag=LT+1 udp=666] HEARTBEAT
			> [udp=666 tag=0] ABORT
			> [udp=666 damage] HEARTBEAT
			path 0 udp=9899`})
	runAttacks(t, list)
}

// TestSecurityAcks has a peer acknowledge what it did not get, or take
// acknowledgements back.
func TestSecurityAcks(t *testing.T) {
	const optimistic = "RFC 5062, Section 5.3: optimistic acknowledgements; dcSCTP 0.1.11: crafted SACKs"
	runAttacks(t, []attack{
		{"cumulative TSN never sent", optimistic, "setup established\nsend len=8\ndrain\n> SACK cum=L+1\n< ABORT {protocol violation}\nstate CLOSED"},
		{"cumulative TSN half the space ahead", optimistic, "setup established\nsend len=8\ndrain\n> SACK cum=L+2147483647\n< ABORT {protocol violation}"},
		{"gap block never sent", optimistic, "setup established\nsend len=8 n=3\ndrain\n> SACK cum=L-1 gap=2-4\n< ABORT {protocol violation}"},
		{"gap block at the end of the space", optimistic, "setup established\nsend len=8 n=3\ndrain\n> SACK cum=L-1 gap=65535-65535\n< ABORT {protocol violation}"},
		{"empty and reversed gap blocks", optimistic, "setup established\nsend len=8 n=5\ndrain\n> SACK cum=L-1 gap=0-0,5-2,0-65535\nstate ESTABLISHED\nstat InFlight=120"},
		{"overlapping gap blocks count once", optimistic, "setup established\nsend len=8 n=5\ndrain\n> SACK cum=L-1 gap=2-4,3-5,2-2,2-5\nstat InFlight=24\npath 0 cwnd<=4404"},
		{"ancient SACK", optimistic, "setup established\nsend len=8 n=3\ndrain\n> SACK cum=L+1 rwnd=9000\n> SACK cum=L-2147483000 rwnd=0\n> SACK cum=L-1 rwnd=0\nstat PeerWindow>=8000"},
		{"SHUTDOWN for what was never sent", optimistic, "setup established\nsend len=8\ndrain\n> SHUTDOWN cum=L+9\n< ABORT {protocol violation}"},
		{"counts that do not fit the chunk", optimistic, "setup established\nsend len=8\ndrain\n> RAW hex=0300001000000000000100001000ffff\n> RAW hex=03000010000000000001000010000000\nstate ESTABLISHED\nstat InFlight=24"},
		{"split acknowledgements do not speed up", "ACK splitting: SAVAGE99", `
			setup established
			send len=1424 n=40
			drain
			repeat 30
			> SACK cum=L-1 dup=L
			end
			path 0 cwnd=4404`},
		{"gap acks come and go", "reneging as a way to make the sender work", `
			setup established
			send len=8 n=10
			drain
			repeat 50
			> SACK cum=L-1 gap=3-9
			drain
			> SACK cum=L-1
			drain
			end
			state ESTABLISHED
			stat FastRetransmits<=20`},
		{"duplicates of all kinds", "usrsctp #380: lists in SACKs are views of the packet", "setup established\nsend len=8\ndrain\n> SACK cum=L dup=0,1,4294967295,L,L+99\nstate ESTABLISHED\nstat InFlight=0"},
	})
}

// TestSecurityData has a peer send data that no honest one would.
func TestSecurityData(t *testing.T) {
	const fragments = "CVE-2014-3688 class: fragments and TSNs that fill the queues"
	runAttacks(t, []attack{
		{"TSN beyond the window", fragments, "setup established\n> DATA BE tsn=P+200000\n< SACK cum=P-1 gap=none\nnorecv"},
		{"TSN half the space ahead", fragments, "setup established\n> DATA BE tsn=P+2147483000\n< SACK cum=P-1 gap=none\nnorecv"},
		{"ancient TSN", fragments, "setup established\n> DATA BE tsn=P\n< SACK cum=P\n> DATA BE tsn=P-2000000000\n< SACK cum=P\n> DATA BE tsn=P-1\n< SACK cum=P\nrecv\nnorecv"},
		{"middle before begin", fragments, "setup established\n> DATA - tsn=P; DATA - tsn=P+1; DATA E tsn=P+2\ndrain\nnorecv"},
		{"begin within a message", fragments, "setup established\n> DATA B tsn=P; DATA B tsn=P+1 ssn=1\ndrain\nstate CLOSED"},
		{"stream changes within a message", fragments, "setup established\n> DATA B tsn=P sid=1; DATA E tsn=P+1 sid=2\ndrain\nstate CLOSED"},
		{"SSN changes within a message", fragments, "setup established\n> DATA B tsn=P ssn=0; DATA E tsn=P+1 ssn=1\ndrain\nstate CLOSED"},
		{"same SSN twice", fragments, "setup established\n> DATA BE tsn=P ssn=1; DATA BE tsn=P+1 ssn=1\ndrain\nstate CLOSED"},
		{"same TSN with other data", fragments, "setup established\n> DATA BE tsn=P \"one\"\n< SACK cum=P\n> DATA BE tsn=P \"two\"\n< SACK cum=P dup=P\nrecv \"one\"\nnorecv"},
		{"I-DATA: FSN twice", "dcSCTP 0.1.11: crafted MID and FSN", "peer ext=idata\nsetup established\n> I-DATA B tsn=P mid=0; I-DATA - tsn=P+1 mid=0 fsn=2; I-DATA - tsn=P+2 mid=0 fsn=2\ndrain\nstate CLOSED"},
		{"I-DATA: two ends", "dcSCTP 0.1.11: crafted MID and FSN", "peer ext=idata\nsetup established\n> I-DATA B tsn=P mid=0; I-DATA E tsn=P+1 mid=0 fsn=5; I-DATA E tsn=P+2 mid=0 fsn=3\ndrain\nstate CLOSED"},
		{"I-DATA: behind the end", "dcSCTP 0.1.11: crafted MID and FSN", "peer ext=idata\nsetup established\n> I-DATA E tsn=P mid=0 fsn=3; I-DATA - tsn=P+1 mid=0 fsn=4\ndrain\nstate CLOSED"},
		{"I-DATA: MID far ahead", "dcSCTP 0.1.11: crafted MID", "peer ext=idata\nsetup established\n> I-DATA BE tsn=P mid=4294967295; I-DATA BE tsn=P+1 mid=2147483647\ndrain\nnorecv"},
		{"stream out of range", "SA-15:02: stream indices", "config in=4\nsetup established\n> DATA BE tsn=P sid=4; DATA BE tsn=P+1 sid=65535\n< ERROR; ERROR; SACK cum=P+1\nnorecv\nstate ESTABLISHED"},
		{"no user data", "CVE-2015-5283 class: chunks without what they need", "setup established\n> DATA BE tsn=P len=0\n< ABORT {no user data}"},
		{"chunk length zero", "CVE-2019-20503: two parsers that disagree", "setup established\n> RAW hex=0003000000000000000000000000000000000000\ndrop malformed\nstate ESTABLISHED"},
		{"chunk length beyond the packet", "CVE-2019-20503: two parsers that disagree", "setup established\n> DATA BE tsn=P _length=400\ndrop malformed\nnorecv\nstate ESTABLISHED"},
		{"second chunk overlaps the end", "CVE-2019-20503: two parsers that disagree", "setup established\n> HEARTBEAT; DATA BE tsn=P _length=60000\n< HEARTBEAT ACK\nnorecv"},
	})
}

// TestSecurityForward has a peer skip what it should not.
func TestSecurityForward(t *testing.T) {
	const forward = "usrsctp #547, dcSCTP 0.1.11: FORWARD-TSN"
	runAttacks(t, []attack{
		{"far ahead", forward, "peer ext=pr\nsetup established\n> FORWARD-TSN cum=P+1000000\n< ABORT {protocol violation}"},
		{"half the space ahead", forward, "peer ext=pr\nsetup established\n> FORWARD-TSN cum=P+2147483640\n< ABORT {protocol violation}"},
		{"behind", forward, "peer ext=pr\nsetup established\n> DATA BE tsn=P\ndrain\n> FORWARD-TSN cum=P-100\n< SACK cum=P\nrecv"},
		{"stream out of range", forward, "peer ext=pr\nsetup established\n> FORWARD-TSN cum=P skip=9999:1,65535:65535\n< SACK cum=P\nstate ESTABLISHED"},
		{"one stream many times", forward, "peer ext=pr\nsetup established\n> FORWARD-TSN cum=P skip=1:1,1:2,1:1,1:3\n< SACK cum=P\n> DATA BE tsn=P+1 sid=1 ssn=4\ndrain\nrecv sid=1"},
		{"over a message that is read in part", forward, `
			config rcvbuf=4000
			peer ext=pr
			setup established
			> DATA B tsn=P len=1000; DATA - tsn=P+1 len=1000; DATA - tsn=P+2 len=1000
			drain
			recv part
			drain
			> FORWARD-TSN cum=P+9 skip=0:0
			drain
			> DATA E tsn=P+3 len=1000
			drain
			recv aborted
			norecv`},
		{"cut in the midst of a pair", forward, "peer ext=pr\nsetup established\n> FORWARD-TSN cum=P skip=1:1,2:2 _length=14 _cut=0\nstate ESTABLISHED"},
		{"I-FORWARD-TSN of fragments", forward, "peer ext=ipr\nsetup established\n> I-DATA B tsn=P+1 sid=1 mid=0; I-DATA UB tsn=P+2 sid=1 mid=0\ndrain\n> I-FORWARD-TSN cum=P+5 skip=1:0,1:0U\n< SACK cum=P+5\nnorecv\n> I-DATA BE tsn=P+6 sid=1 mid=1\ndrain\nrecv mid=1"},
	})
}

// TestSecurityHandshake attacks the establishment of associations.
func TestSecurityHandshake(t *testing.T) {
	const init = "CVE-2018-5803, CVE-2026-53246 class: lengths and lists of INIT"
	runAttacks(t, []attack{
		{"thousand addresses", init, "setup listener\n> INIT {addrs 1000}\ndrain\n> COOKIE ECHO\n< COOKIE ACK\npaths 16"},
		{"thousand addresses in the INIT ACK", init, "setup wait\n> INIT ACK {cookie, addrs 1000}\n< COOKIE ECHO\npaths 16"},
		{"same address many times", init, "setup listener\n> INIT {ipv4 10.0.0.3, ipv4 10.0.0.3, ipv4 10.0.0.2}\ndrain\n> COOKIE ECHO\n< COOKIE ACK\npaths 2"},
		{"addresses of nobody", "RFC 5062, Section 5: bombing", "setup listener\n> INIT {ipv4 224.0.0.1, ipv4 255.255.255.255, ipv4 0.0.0.0, ipv6 ff02::1}\ndrain\n> COOKIE ECHO\n< COOKIE ACK\npaths 1"},
		{"thousand unknown parameters", "CVE-2026-7164: recursion over parameters", "setup listener\n> INIT {params 1000 0xc123 8}\n< [size<=2048] INIT ACK"},
		{"one huge unknown parameter", "dcSCTP 0.1.11: oversized reports", "setup listener\n> INIT {param 0xc123 30000}\n< [size<=400] INIT ACK"},
		{"unknown parameters of an INIT ACK", "dcSCTP 0.1.11: oversized reports", "setup wait\n> INIT ACK {cookie, params 1000 0xc123 8}\n< [size<=1452] COOKIE ECHO; *"},
		{"short address parameter", "CVE-2019-20503: two parsers that disagree", "setup listener\n> INIT {hex 000500060a000000}\n< ABORT\nnoassoc"},
		{"parameter of length zero", init, "setup listener\n> INIT {hex 00050000}\n< ABORT\nnoassoc"},
		{"parameter longer than the chunk", init, "setup listener\n> INIT {hex 0005ffff0a000001}\n< ABORT\nnoassoc"},
		{"INIT ACK without cookie", "usrsctp #351: fuzzed INIT ACK", "setup wait\n> INIT ACK {hex 00070004}\n< ABORT\nstate CLOSED"},
		{"huge cookie", "CVE-2026-53224: lengths inside cookies", "setup listener\n> INIT\ndrain\n> COOKIE ECHO len=60000\nnoassoc\n> COOKIE ECHO len=1\nnoassoc\n> COOKIE ECHO len=0\nnoassoc"},
		{"cookie of another port", "RFC 5062, Section 7: association redirection", "setup listener\n> INIT\ndrain\n> [sport=5009] COOKIE ECHO\nnoassoc"},
		{"COOKIE ECHO again and again", "CVE-2013-2206: duplicate COOKIE ECHO", "setup server\nrepeat 50\n> COOKIE ECHO\n< COOKIE ACK\nend\n> DATA BE tsn=P\n< SACK cum=P\nstate ESTABLISHED"},
		{"COOKIE ECHO after data", "CVE-2013-2206: duplicate COOKIE ECHO", "setup server\n> DATA BE tsn=P\ndrain\n> COOKIE ECHO; DATA BE tsn=P+1 ssn=1\n< COOKIE ACK; SACK cum=P+1\nrecv\nrecv"},
		{"AUTH before COOKIE ECHO", "CVE-2014-0101: AUTH before COOKIE ECHO", "setup listener\n> INIT\ndrain\n> AUTH; COOKIE ECHO\ndrain\n> [tag=LT] AUTH\ndrain"},
		{"restart with data in flight", "CVE-2021-30523: use after free at restart", `
			setup established
			send len=1424 n=20
			drain
			> DATA B tsn=P len=1000; DATA BE tsn=P+3 ssn=3
			drain
			> INIT tag=PT+1 tsn=5
			drain
			> [tag=NT] COOKIE ECHO; DATA BE tsn=5
			< [tag=50505051] COOKIE ACK; SACK cum=5
			released n=20 "restarted"
			recv len=8
			norecv
			stat InFlight=0`},
		{"restart that adds an address", "RFC 5062, Section 4: association hijacking", "setup established\n> INIT tag=PT+1 {ipv4 10.9.9.9}\n< [tag=50505051] ABORT {restart}\nstate ESTABLISHED\npaths 1"},
		{"INIT of a stranger who lists the peer", "RFC 5062, Section 2: address camping", "setup established\n> [from=10.0.0.66] INIT tag=PT+1 {ipv4 10.0.0.2}\n< [to=10.0.0.66 tag=50505051] ABORT\nstate ESTABLISHED"},
		{"stale cookie errors without end", "stale cookie as a way to keep a client busy", "setup echoed\nrepeat 4\n> ERROR {stale 1}\n< INIT\n> INIT ACK {cookie}\n< COOKIE ECHO\nend\n> ERROR {stale 1}\nstate CLOSED"},
	})
}

// TestSecurityControl has a peer send control chunks to make us work, or to move
// data elsewhere.
func TestSecurityControl(t *testing.T) {
	runAttacks(t, []attack{
		{"forged HEARTBEAT ACK", "dcSCTP 0.1.11: HEARTBEAT ACK without the nonce", "peer addrs=10.0.0.66\nsetup established\n+1ms\ndrain\n> HEARTBEAT ACK forged\n> HEARTBEAT ACK info=20\n> HEARTBEAT ACK info=0\n> HEARTBEAT ACK info=500\npath 1 confirmed=false"},
		{"HEARTBEAT ACK twice", "dcSCTP 0.1.11: HEARTBEAT ACK without the nonce", "setup established\nrequestheartbeat 10.0.0.2\ndrain\n+100ms\n> HEARTBEAT ACK\n+5s\n> HEARTBEAT ACK\npath 0 srtt<=100"},
		{"HEARTBEAT larger than the path", "amplification by HEARTBEAT", "config mtu=508\nsetup established\n> HEARTBEAT info=600\nstate ESTABLISHED"},
		{"thousand HEARTBEATs in a packet", "bounded control replies", "setup established\n> CHUNK type=4 len=0; CHUNK type=4 len=0; CHUNK type=4 len=0; CHUNK type=4 len=0; CHUNK type=4 len=0; CHUNK type=4 len=0; CHUNK type=4 len=0; CHUNK type=4 len=0; CHUNK type=4 len=0; CHUNK type=4 len=0\n< [size<=44] *"},
		{"ERROR with thousands of causes", "CVE-2026-49759: stack overflow over causes", "setup established\n> ERROR {causes 16000 99}\nstate ESTABLISHED\nevent peer error cause=99"},
		{"ABORT with thousands of causes", "CVE-2026-49759: stack overflow over causes", "setup established\n> ABORT {causes 16000 99}\nstate CLOSED"},
		{"ABORT whose causes lie", "format errors of ABORT", "setup established\n> ABORT {causelength 12 999}\nstate ESTABLISHED\nnoevent down"},
		{"huge unknown chunk", "dcSCTP 0.1.11: oversized unrecognized chunks", "setup established\n> CHUNK type=0xfe len=5000; HEARTBEAT\n< [size<=1100] *"},
		{"many unknown chunks", "dcSCTP 0.1.11: oversized unrecognized chunks", "setup established\n> CHUNK type=0xfe len=300; CHUNK type=0xfe len=300; CHUNK type=0xfe len=300; CHUNK type=0xfe len=300; CHUNK type=0xfe len=300\n< [size<=1100] ERROR; *"},
		{"ASCONF that was not negotiated", "CVE-2014-3673: malformed ASCONF", "setup established\n> ASCONF {delip 10.0.0.2}\ndrain\n> ASCONF {hex c0020000}\ndrain\n> ASCONF-ACK seq=1\nstate ESTABLISHED\npaths 1"},
		{"ASCONF twice", "CVE-2014-3687: duplicate ASCONF", "setup established\n> ASCONF seq=P; ASCONF seq=P; ASCONF seq=P\ndrain\nstate ESTABLISHED"},
		{"RE-CONFIG of streams out of range", "stream indices", "peer ext=reconfig\nsetup established\n> RE-CONFIG {outreset req=P streams=9999|65535}\n< RE-CONFIG {result=3}; SACK\nstate ESTABLISHED"},
		{"RE-CONFIG numbers guessed", "replayed re-configuration", "peer ext=reconfig\nsetup established\n> RE-CONFIG {outreset req=P+7}\n< RE-CONFIG {result=5}; SACK\n> RE-CONFIG {tsnreset req=P-1}\n< RE-CONFIG {result=5}; SACK\nnoevent streams reset"},
		{"RE-CONFIG adds streams without end", "stream exhaustion", "config in=20\npeer ext=reconfig\nsetup established\nrepeat 30\n> RE-CONFIG {addout req=P+i n=10}\ndrain\nend\nstreams in=20"},
		{"answers to what was not asked", "CVE-2014-3673 class: unexpected answers", "peer ext=reconfig\nsetup established\n> RE-CONFIG {response resp=L}\n> RE-CONFIG {response resp=L next=1 mine=1}\n> HEARTBEAT ACK info=20\n> CWR tsn=L\n> ECNE tsn=L+99\nstate ESTABLISHED"},
		{"SHUTDOWN COMPLETE out of place", "ends without the four ways", "setup pending\n> SHUTDOWN COMPLETE\n> SHUTDOWN ACK\nstate SHUTDOWN-PENDING"},
		{"ABORT or SHUTDOWN ACK to nobody", "answers to answers", "setup nobody\n> [tag=1] ABORT\n> [tag=1] SHUTDOWN COMPLETE\n> [tag=1] COOKIE ACK\n> [tag=1] ERROR {stale 1}\n> [tag=1] INIT ACK {cookie}\n> [tag=1] COOKIE ECHO len=200\ndrop out of the blue"},
	})
}
