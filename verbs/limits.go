package verbs

import "github.com/weftstack/weft/ddp"

// Defaults and limits.
const (
	// MaxPrivateData bounds private data: 512 bytes less the 4 that carry the
	// read depths (RFC 5043, Section 5.2.3; RFC 6581, Section 9).
	MaxPrivateData = 508
	// DefaultDepth is the default of QPConfig.SendDepth and RecvDepth,
	// MaxDepth bounds them.
	DefaultDepth, MaxDepth = 128, 32768
	// MaxSRQDepth bounds SRQConfig.Depth.
	MaxSRQDepth = 1 << 20
	// DefaultSGE is the default of QPConfig.MaxSendSGE and MaxRecvSGE, MaxSGE
	// bounds them.
	DefaultSGE, MaxSGE = 4, 64
	// DefaultInline is the default of QPConfig.MaxInline, MaxInline bounds
	// it.
	DefaultInline, MaxInline = 64, 1024
	// DefaultReadDepth is the default of QPConfig.IRD and ORD, MaxReadDepth
	// bounds them.
	DefaultReadDepth, MaxReadDepth = 16, 1024
	// MaxCQ bounds the depth of a completion queue.
	MaxCQ = 1 << 22
	// MaxRegion bounds the size of a region: tagged offsets and lengths must
	// not wrap.
	MaxRegion = ddp.MaxRegion
)
