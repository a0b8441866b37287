module github.com/weftstack/weft/interop/peers

go 1.26.0

replace github.com/weftstack/weft => ../..

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/pion/logging v0.2.4
	github.com/pion/sctp v1.11.3
	github.com/quic-go/quic-go v0.65.0
	github.com/weftstack/weft v0.0.0-00010101000000-000000000000
	golang.org/x/sys v0.49.0
)

require (
	github.com/klauspost/crc32 v1.3.0 // indirect
	github.com/pion/datachannel v1.6.3 // indirect
	github.com/pion/randutil v0.1.0 // indirect
	github.com/pion/transport/v5 v5.0.1 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/net v0.62.0 // indirect
)
