package ddp

import "fmt"

// Fault is an error that ends a stream, in the form it has on the wire: layer
// (4 bits), error type (4 bits) and error code (8 bits), as RFC 5040, Section
// 4.8 and the registries of RFC 6580, Section 3 lay them out. The zero Fault
// means no fault. It is an error value that costs no allocation to return.
type Fault uint16

// DDP errors (RFC 5041, Section 7.2).
const (
	// FaultLocal is a local catastrophic error, and also stands for a segment
	// too short to hold its header, for which there is no number.
	FaultLocal Fault = 0x1000

	FaultSTag          Fault = 0x1100 // invalid STag
	FaultBounds        Fault = 0x1101 // base or bounds violation
	FaultNotAssociated Fault = 0x1102 // STag not associated with the stream
	FaultWrap          Fault = 0x1103 // TO wrap
	FaultTaggedVersion Fault = 0x1104 // invalid DDP version, tagged

	FaultQN              Fault = 0x1201 // invalid QN
	FaultNoBuffer        Fault = 0x1202 // invalid MSN, no buffer available
	FaultMSN             Fault = 0x1203 // invalid MSN, range is not valid
	FaultMO              Fault = 0x1204 // invalid MO
	FaultTooLong         Fault = 0x1205 // message too long for the buffer
	FaultUntaggedVersion Fault = 0x1206 // invalid DDP version, untagged
)

// Layers of a Fault.
const (
	LayerRDMAP uint8 = 0
	LayerDDP   uint8 = 1
	LayerLLP   uint8 = 2
)

// NewFault puts a Fault together. NewFault(0, 0, 0), a local catastrophic
// error of RDMAP, for which any code will do, gets code 0xFF.
func NewFault(layer, etype, code uint8) Fault {
	f := Fault(layer&15)<<12 | Fault(etype&15)<<8 | Fault(code)
	if f == 0 {
		f = 0x00FF
	}
	return f
}

// Layer returns the layer that found the error.
func (f Fault) Layer() uint8 { return uint8(f >> 12) }

// Type returns the error type within the layer.
func (f Fault) Type() uint8 { return uint8(f>>8) & 15 }

// Code returns the error code within the type.
func (f Fault) Code() uint8 { return uint8(f) }

var faultNames = map[Fault]string{
	FaultLocal:           "DDP local catastrophic error",
	FaultSTag:            "DDP tagged buffer: invalid STag",
	FaultBounds:          "DDP tagged buffer: base or bounds violation",
	FaultNotAssociated:   "DDP tagged buffer: STag not associated with stream",
	FaultWrap:            "DDP tagged buffer: TO wrap",
	FaultTaggedVersion:   "DDP tagged buffer: invalid DDP version",
	FaultQN:              "DDP untagged buffer: invalid QN",
	FaultNoBuffer:        "DDP untagged buffer: invalid MSN, no buffer available",
	FaultMSN:             "DDP untagged buffer: invalid MSN, range is not valid",
	FaultMO:              "DDP untagged buffer: invalid MO",
	FaultTooLong:         "DDP untagged buffer: message too long for buffer",
	FaultUntaggedVersion: "DDP untagged buffer: invalid DDP version",

	0x0100: "remote protection: invalid STag",
	0x0101: "remote protection: base or bounds violation",
	0x0102: "remote protection: access rights violation",
	0x0103: "remote protection: STag not associated with stream",
	0x0104: "remote protection: TO wrap",
	0x0109: "remote protection: STag cannot be invalidated",
	0x01FF: "remote protection: unspecified error",
	0x0205: "remote operation: invalid RDMAP version",
	0x0206: "remote operation: unexpected opcode",
	0x0207: "remote operation: catastrophic error, localized to stream",
	0x0208: "remote operation: catastrophic error, global",
	0x0209: "remote operation: STag cannot be invalidated",
	0x02FF: "remote operation: unspecified error",

	0x2001: "LLP: connection lost",
	0x2002: "LLP: CRC error",
	0x2003: "LLP: marker and length mismatch",
	0x2004: "LLP: invalid request or reply frame",
	0x2005: "LLP: local catastrophic error",
	0x2006: "LLP: insufficient IRD resources",
	0x2007: "LLP: no matching RTR option",
}

// String returns the registered name (RFC 6580, Section 3) and the number.
func (f Fault) String() string {
	n, ok := faultNames[f]
	if !ok {
		n = "unregistered error"
		if f.Layer() == LayerRDMAP && f.Type() == 0 {
			n = "RDMAP local catastrophic error"
		}
	}
	return fmt.Sprintf("%s (%d/%d/%02x)", n, f.Layer(), f.Type(), f.Code())
}

// Error implements error.
func (f Fault) Error() string { return "ddp: " + f.String() }
