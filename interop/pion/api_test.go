package sctp

import (
	"context"
	"net"
	"time"

	"github.com/pion/logging"
)

// The exported names of github.com/pion/sctp v1.12.0 with their types: the file compiles only if all are
// there.

var (
	_ func(opts ...ClientOption) ([]byte, error)                                                                   = GenerateOutOfBandToken
	_ func(msg []byte) int                                                                                         = TryMarshalUnmarshal
	_ func(config Config) (*Association, error)                                                                    = Client
	_ func(ctx context.Context, opts ...ClientOption) (*Association, error)                                        = ClientContext
	_ func(opts ...ClientOption) (*Association, error)                                                             = ClientWithOptions
	_ func(config Config) (*Association, error)                                                                    = Server
	_ func(opts ...ServerOption) (*Association, error)                                                             = ServerWithOptions
	_ func(_ *Association, reason string)                                                                          = (*Association).Abort
	_ func(*Association) (*Stream, error)                                                                          = (*Association).AcceptStream
	_ func(*Association)                                                                                           = (*Association).ActiveHeartbeat
	_ func(*Association) int                                                                                       = (*Association).BufferedAmount
	_ func(*Association) uint64                                                                                    = (*Association).BytesReceived
	_ func(*Association) uint64                                                                                    = (*Association).BytesSent
	_ func(*Association) uint32                                                                                    = (*Association).CWND
	_ func(*Association) error                                                                                     = (*Association).Close
	_ func(*Association) uint32                                                                                    = (*Association).MTU
	_ func(*Association) uint32                                                                                    = (*Association).MaxMessageSize
	_ func(*Association) (AssociationMetadata, bool)                                                               = (*Association).Metadata
	_ func(_ *Association, streamIdentifier uint16, defaultPayloadType PayloadProtocolIdentifier) (*Stream, error) = (*Association).OpenStream
	_ func(*Association) uint32                                                                                    = (*Association).RWND
	_ func(*Association) float64                                                                                   = (*Association).SRTT
	_ func(_ *Association, maxMsgSize uint32)                                                                      = (*Association).SetMaxMessageSize
	_ func(_ *Association, ctx context.Context) error                                                              = (*Association).Shutdown
	_ func() AssociationInterleavingOption                                                                         = WithInterleavingRoundRobinScheduler
	_ func(newScheduler InterleavingStreamSchedulerFactory) AssociationInterleavingOption                          = WithInterleavingStreamSchedulerFactory
	_ func() AssociationInterleavingOption                                                                         = WithInterleavingWeightedFairQueueingScheduler
	_ func(streamID uint16, weight uint16) AssociationInterleavingOption                                           = WithInterleavingWeightedFairQueueingWeight
	_ func(b bool) AssociationOption                                                                               = WithBlockWrite
	_ func(cwndCAStep uint32) AssociationOption                                                                    = WithCwndCAStep
	_ func(b bool) AssociationOption                                                                               = WithEnableInterleaving
	_ func(b bool) AssociationOption                                                                               = WithEnableZeroChecksum
	_ func(fastRtxWnd uint32) AssociationOption                                                                    = WithFastRtxWnd
	_ func(opts ...AssociationInterleavingOption) AssociationOption                                                = WithInterleavingOptions
	_ func(loggerFactory logging.LoggerFactory) AssociationOption                                                  = WithLoggerFactory
	_ func(size uint32) AssociationOption                                                                          = WithMTU
	_ func(size uint32) AssociationOption                                                                          = WithMaxMessageSize
	_ func(maxEntries uint32) AssociationOption                                                                    = WithMaxReassemblyQueueEntries
	_ func(size uint32) AssociationOption                                                                          = WithMaxReceiveBufferSize
	_ func(minCwnd uint32) AssociationOption                                                                       = WithMinCwnd
	_ func(name string) AssociationOption                                                                          = WithName
	_ func(conn net.Conn) AssociationOption                                                                        = WithNetConn
	_ func(opts ...AssociationRACKOption) AssociationOption                                                        = WithRACKOptions
	_ func(rtoMax float64) AssociationOption                                                                       = WithRTOMax
	_ func(localSctpInit []byte, remoteSctpInit []byte) AssociationOption                                          = WithSNAP
	_ func(rackMinRTTWnd time.Duration) AssociationRACKOption                                                      = WithRackMinRTTWnd
	_ func(rackReoWndFloor time.Duration) AssociationRACKOption                                                    = WithRackReoWndFloor
	_ func(rackWCDelAck time.Duration) AssociationRACKOption                                                       = WithRackWCDelAck
	_ func(PayloadProtocolIdentifier) string                                                                       = (PayloadProtocolIdentifier).String
	_ func(*Stream) uint64                                                                                         = (*Stream).BufferedAmount
	_ func(*Stream) uint64                                                                                         = (*Stream).BufferedAmountLowThreshold
	_ func(*Stream) error                                                                                          = (*Stream).Close
	_ func(_ *Stream, f func())                                                                                    = (*Stream).OnBufferedAmountLow
	_ func(_ *Stream, p []byte) (int, error)                                                                       = (*Stream).Read
	_ func(_ *Stream, payload []byte) (int, PayloadProtocolIdentifier, error)                                      = (*Stream).ReadSCTP
	_ func(_ *Stream, th uint64)                                                                                   = (*Stream).SetBufferedAmountLowThreshold
	_ func(_ *Stream, t time.Time) error                                                                           = (*Stream).SetDeadline
	_ func(_ *Stream, defaultPayloadType PayloadProtocolIdentifier)                                                = (*Stream).SetDefaultPayloadType
	_ func(_ *Stream, deadline time.Time) error                                                                    = (*Stream).SetReadDeadline
	_ func(_ *Stream, unordered bool, relType byte, relVal uint32)                                                 = (*Stream).SetReliabilityParams
	_ func(_ *Stream, deadline time.Time) error                                                                    = (*Stream).SetWriteDeadline
	_ func(*Stream) StreamState                                                                                    = (*Stream).State
	_ func(*Stream) uint16                                                                                         = (*Stream).StreamIdentifier
	_ func(_ *Stream, payload []byte) (n int, err error)                                                           = (*Stream).Write
	_ func(_ *Stream, payload []byte, ppi PayloadProtocolIdentifier) (int, error)                                  = (*Stream).WriteSCTP
	_ func(StreamState) string                                                                                     = (StreamState).String
)

var _ = []error{
	ErrChunk,
	ErrShutdownNonEstablished,
	ErrAssociationClosedBeforeConn,
	ErrAssociationClosed,
	ErrSilentlyDiscard,
	ErrInitNotStoredToSend,
	ErrCookieEchoNotStoredToSend,
	ErrSCTPPacketSourcePortZero,
	ErrSCTPPacketDestinationPortZero,
	ErrInitChunkBundled,
	ErrInitChunkVerifyTagNotZero,
	ErrHandleInitState,
	ErrInitAckNoCookie,
	ErrInflightQueueTSNPop,
	ErrTSNRequestNotExist,
	ErrResetPacketInStateNotExist,
	ErrParamterType,
	ErrPayloadDataStateNotExist,
	ErrChunkTypeUnhandled,
	ErrHandshakeInitAck,
	ErrHandshakeCookieEcho,
	ErrTooManyReconfigRequests,
	ErrAssociationRestarted,
	ErrChunkTypeNotAbort,
	ErrBuildAbortChunkFailed,
	ErrChunkTypeNotCtError,
	ErrBuildErrorChunkFailed,
	ErrMarshalStreamFailed,
	ErrChunkTooShort,
	ErrChunkTypeNotHeartbeat,
	ErrHeartbeatNotLongEnoughInfo,
	ErrParseParamTypeFailed,
	ErrHeartbeatParam,
	ErrHeartbeatChunkUnmarshal,
	ErrHeartbeatExtraNonZero,
	ErrHeartbeatMarshalNoInfo,
	ErrUnimplemented,
	ErrChunkTypeNotHeartbeatAck,
	ErrHeartbeatAckParams,
	ErrHeartbeatAckNotHeartbeatInfo,
	ErrHeartbeatAckMarshalParam,
	ErrChunkTypeNotTypeInit,
	ErrChunkValueNotLongEnough,
	ErrChunkTypeInitFlagZero,
	ErrChunkTypeInitUnmarshalFailed,
	ErrChunkTypeInitMarshalFailed,
	ErrChunkTypeInitInitateTagZero,
	ErrInitInboundStreamRequestZero,
	ErrInitOutboundStreamRequestZero,
	ErrInitAdvertisedReceiver1500,
	ErrInitUnknownParam,
	ErrChunkTypeNotInitAck,
	ErrChunkNotLongEnoughForParams,
	ErrChunkTypeInitAckFlagZero,
	ErrInitAckUnmarshalFailed,
	ErrInitCommonDataMarshalFailed,
	ErrChunkTypeInitAckInitateTagZero,
	ErrInitAckInboundStreamRequestZero,
	ErrInitAckOutboundStreamRequestZero,
	ErrInitAckAdvertisedReceiver1500,
	ErrInitChunkParseParamTypeFailed,
	ErrInitAckMarshalParam,
	ErrChunkParseParamTypeFailed,
	ErrChunkMarshalParamAReconfigFailed,
	ErrChunkMarshalParamBReconfigFailed,
	ErrChunkTypeNotSack,
	ErrSackSizeNotLargeEnoughInfo,
	ErrSackSizeNotMatchPredicted,
	ErrInvalidChunkSize,
	ErrChunkTypeNotShutdown,
	ErrChunkHeaderTooSmall,
	ErrChunkHeaderNotEnoughSpace,
	ErrChunkHeaderPaddingNonZero,
	ErrPacketRawTooSmall,
	ErrParseSCTPChunkNotEnoughData,
	ErrUnmarshalUnknownChunkType,
	ErrChecksumMismatch,
	ErrZeroChecksumParamTooShort,
	ErrZeroChecksumParamInvalidLength,
	ErrParamHeaderTooShort,
	ErrParamHeaderSelfReportedLengthShorter,
	ErrParamHeaderSelfReportedLengthLonger,
	ErrParamHeaderParseFailed,
	ErrUnexpectedChunkPoppedUnordered,
	ErrUnexpectedChunkPoppedOrdered,
	ErrUnexpectedChunkPoppedStream,
	ErrUnexpectedQState,
	ErrPendingQueueModeChangeNonEmpty,
	ErrUnexpectedChuckPoppedUnordered,
	ErrUnexpectedChuckPoppedOrdered,
	ErrOutboundPacketTooLarge,
	ErrStreamClosed,
	ErrReadDeadlineExceeded,
	ErrBuildErrorCaseHandle,
	ErrChunkPayloadSmall,
	ErrChunkTypeNotCookieAck,
	ErrChunkTypeNotCookieEcho,
	ErrChunkTypeNotShutdownAck,
	ErrChunkTypeNotShutdownComplete,
	ErrParamPacketTooShort,
	ErrProtocolViolationUnmarshal,
	ErrReconfigRespParamTooShort,
	ErrSSNResetRequestParamTooShort,
	ErrInvalidAlgorithmType,
	ErrInvalidChunkLength,
	ErrInvalidSCTPChunk,
	ErrParamTypeUnhandled,
	ErrUserInitiatedAbort,
}

// Fields and methods by which programs use these types.
var (
	_ = Config{
		LoggerFactory: logging.LoggerFactory(nil), Name: "", NetConn: net.Conn(nil), BlockWrite: false,
		EnableZeroChecksum: false, MTU: uint32(0), MaxReceiveBufferSize: uint32(0), MaxMessageSize: uint32(0),
		RTOMax: float64(0), MinCwnd: uint32(0), FastRtxWnd: uint32(0), CwndCAStep: uint32(0),
	}
	_ = AssociationMetadata{
		MessageInterleavingEnabled: false, PartialReliabilityMode: PartialReliabilityModeNone,
		ZeroChecksumSendingEnabled: false, ZeroChecksumReceivingEnabled: false,
	}
	_ = map[byte]bool{ReliabilityTypeReliable: true, ReliabilityTypeRexmit: true, ReliabilityTypeTimed: true}
	_ = map[StreamState]bool{StreamStateOpen: true, StreamStateClosing: true, StreamStateClosed: true}
	_ = map[PartialReliabilityMode]bool{
		PartialReliabilityModeNone: true, PartialReliabilityModeForwardTSN: true, PartialReliabilityModeIForwardTSN: true,
	}
	_ = map[PayloadProtocolIdentifier]bool{
		PayloadTypeUnknown: true, PayloadTypeWebRTCDCEP: true, PayloadTypeWebRTCString: true,
		PayloadTypeWebRTCBinary: true, PayloadTypeWebRTCStringEmpty: true, PayloadTypeWebRTCBinaryEmpty: true,
	}
	_ ClientOption = Config{}
	_ ServerOption = Config{}
	_ ClientOption = AssociationOption(nil)
	_ ServerOption = AssociationOption(nil)

	_ AssociationInterleavingOption      = func(*interleavingSettings) error { return nil }
	_ AssociationRACKOption              = func(*rackSettings) error { return nil }
	_ InterleavingStreamSchedulerFactory = func() InterleavingStreamScheduler { return nil }
	_ interface {
		StreamIdentifier() uint16
		UserDataLen() int
		IsStreamReset() bool
	} = StreamSchedulerChunk(nil)
	_ interface {
		Reset()
		Push(StreamSchedulerChunk)
		Peek() StreamSchedulerChunk
		Pop(StreamSchedulerChunk) error
	} = InterleavingStreamScheduler(nil)
)
