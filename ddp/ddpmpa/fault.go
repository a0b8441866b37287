package ddpmpa

import "github.com/weftstack/weft/ddp"

// MPA errors (RFC 5044, Section 8; RFC 6581, Section 8).
const (
	FaultLost   ddp.Fault = 0x2001 // TCP connection closed, terminated, or lost
	FaultCRC    ddp.Fault = 0x2002 // CRC error
	FaultMarker ddp.Fault = 0x2003 // marker and length mismatch
	FaultFrame  ddp.Fault = 0x2004 // invalid request or reply frame
	FaultLocal  ddp.Fault = 0x2005 // local catastrophic error
	FaultIRD    ddp.Fault = 0x2006 // insufficient IRD resources
	FaultRTR    ddp.Fault = 0x2007 // no matching RTR option
)
