package wire

import "encoding/binary"

// Lengths of the headers of DATA and I-DATA chunks, chunk header included.
const (
	DataHeaderLen  = 16 // RFC 9260, Section 3.3.1
	IDataHeaderLen = 20 // RFC 8260, Section 2.1
)

// Flag bits of DATA and I-DATA chunks.
const (
	dataEnd       = 0x01
	dataBegin     = 0x02
	dataUnordered = 0x04
	dataImmediate = 0x08
)

// Data is a DATA chunk (RFC 9260, Section 3.3.1) or an I-DATA chunk (RFC 8260,
// Section 2.1).
type Data struct {
	TSN uint32
	// SID is the stream identifier.
	SID uint16
	// SSN is the stream sequence number of a DATA chunk; it means nothing when
	// Unordered is set. An I-DATA chunk has none.
	SSN uint16
	// MID is the message identifier of an I-DATA chunk. A DATA chunk has none.
	MID uint32
	// FSN is the fragment sequence number of an I-DATA chunk. It is 0, and not
	// sent, in the first fragment. A DATA chunk has none.
	FSN uint32
	// PPID is the payload protocol identifier. An I-DATA chunk carries it only
	// in the first fragment; in others it is 0.
	PPID uint32
	// Begin and End mark the first and last fragment of a message; both are
	// set in a message that is not fragmented.
	Begin, End bool
	Unordered  bool
	// Immediate is the I bit: the sender asks not to delay the SACK.
	Immediate bool
	// Payload is the user data. A parsed one aliases the packet.
	Payload []byte
}

func (d *Data) flags() uint8 {
	return flag(d.End, dataEnd) | flag(d.Begin, dataBegin) |
		flag(d.Unordered, dataUnordered) | flag(d.Immediate, dataImmediate)
}

// ParseData reads a DATA chunk. Payload aliases c. With ErrNoUserData the other
// fields are valid: the receiver aborts and names the TSN (RFC 9260, Section
// 3.3.10.9).
func ParseData(c Chunk) (d Data, err error) {
	err = d.Parse(&c)
	return d, err
}

// Parse is [ParseData] into d.
func (d *Data) Parse(c *Chunk) error {
	v, err := d.begin(c, ChunkData, DataHeaderLen)
	if err != nil {
		return err
	}
	d.SSN, d.MID = binary.BigEndian.Uint16(v[6:]), 0
	d.PPID, d.FSN = binary.BigEndian.Uint32(v[8:]), 0
	return d.end()
}

// begin takes in what DATA and I-DATA chunks have in common and returns the value of
// the chunk.
func (d *Data) begin(c *Chunk, t ChunkType, header int) (v []byte, err error) {
	if v = c.Value; c.Type != t {
		err = ErrType
	} else if len(v) < header-tlvLen {
		err = ErrTruncated
	}
	if err != nil {
		*d = Data{}
		return nil, err
	}
	d.TSN, d.SID = binary.BigEndian.Uint32(v[0:]), binary.BigEndian.Uint16(v[4:])
	d.Begin, d.End = c.Flags&dataBegin != 0, c.Flags&dataEnd != 0
	d.Unordered, d.Immediate = c.Flags&dataUnordered != 0, c.Flags&dataImmediate != 0
	d.Payload = v[header-tlvLen:]
	return v, nil
}

// end tells whether there is user data.
func (d *Data) end() error {
	if len(d.Payload) == 0 {
		return ErrNoUserData
	}
	return nil
}

// AppendData appends d as a DATA chunk, padded. It copies d.Payload; MID and
// FSN are not sent.
func AppendData(b []byte, d Data) []byte {
	at := len(b)
	d.Payload = d.Payload[:min(len(d.Payload), MaxLength-DataHeaderLen)]
	b = AppendDataHeader(b, d, len(d.Payload))
	b = append(b, d.Payload...)
	return pad(b, at)
}

// AppendDataHeader appends the header of a DATA chunk with payloadLen bytes of
// user data, which is at most MaxLength-DataHeaderLen. The caller appends the
// payload, and then padding with [AppendPadding]; d.Payload is not used.
func AppendDataHeader(b []byte, d Data, payloadLen int) []byte { return d.AppendHeader(b, payloadLen) }

// AppendHeader is [AppendDataHeader] of d.
func (d *Data) AppendHeader(b []byte, payloadLen int) []byte {
	b = appendFixed(b, ChunkData, d.flags(), DataHeaderLen-tlvLen+payloadLen)
	b = binary.BigEndian.AppendUint32(b, d.TSN)
	b = binary.BigEndian.AppendUint16(b, d.SID)
	b = binary.BigEndian.AppendUint16(b, d.SSN)
	return binary.BigEndian.AppendUint32(b, d.PPID)
}

// ParseIData reads an I-DATA chunk. Payload aliases c. With ErrNoUserData the
// other fields are valid.
func ParseIData(c Chunk) (d Data, err error) {
	err = d.ParseI(&c)
	return d, err
}

// ParseI is [ParseIData] into d.
func (d *Data) ParseI(c *Chunk) error {
	v, err := d.begin(c, ChunkIData, IDataHeaderLen)
	if err != nil {
		return err
	}
	d.SSN, d.MID = 0, binary.BigEndian.Uint32(v[8:])
	// RFC 8260, Section 2.1: the field is the PPID if the B bit is set, and the
	// FSN then is 0; otherwise it is the FSN.
	d.PPID, d.FSN = binary.BigEndian.Uint32(v[12:]), 0
	if !d.Begin {
		d.PPID, d.FSN = 0, d.PPID
	}
	return d.end()
}

// AppendIData appends d as an I-DATA chunk, padded. It copies d.Payload. PPID
// is sent if d.Begin is set, and FSN otherwise; SSN is not sent.
func AppendIData(b []byte, d Data) []byte {
	at := len(b)
	d.Payload = d.Payload[:min(len(d.Payload), MaxLength-IDataHeaderLen)]
	b = AppendIDataHeader(b, d, len(d.Payload))
	b = append(b, d.Payload...)
	return pad(b, at)
}

// AppendIDataHeader appends the header of an I-DATA chunk with payloadLen bytes
// of user data, which is at most MaxLength-IDataHeaderLen. The caller appends
// the payload, and then padding with [AppendPadding]; d.Payload is not used.
func AppendIDataHeader(b []byte, d Data, payloadLen int) []byte {
	return d.AppendIHeader(b, payloadLen)
}

// AppendIHeader is [AppendIDataHeader] of d.
func (d *Data) AppendIHeader(b []byte, payloadLen int) []byte {
	b = appendFixed(b, ChunkIData, d.flags(), IDataHeaderLen-tlvLen+payloadLen)
	b = binary.BigEndian.AppendUint32(b, d.TSN)
	b = binary.BigEndian.AppendUint16(b, d.SID)
	b = append(b, 0, 0) // reserved
	b = binary.BigEndian.AppendUint32(b, d.MID)
	if d.Begin {
		return binary.BigEndian.AppendUint32(b, d.PPID)
	}
	return binary.BigEndian.AppendUint32(b, d.FSN)
}

// AppendPadding appends the zeros that follow n bytes of chunk.
func AppendPadding(b []byte, n int) []byte {
	switch n & 3 {
	case 1:
		return append(b, 0, 0, 0)
	case 2:
		return append(b, 0, 0)
	case 3:
		return append(b, 0)
	}
	return b
}
