package sctp

import (
	"errors"
	"fmt"
	"os"
)

// Errors that operations of this package return or wrap. Test for them with errors.Is.
var (
	// ErrChunk is matched by the end of an association that the peer has aborted.
	ErrChunk = errors.New("sctp: aborted by the peer")
	// ErrShutdownNonEstablished is returned by Shutdown of an association that is not established.
	ErrShutdownNonEstablished = errors.New("sctp: shutdown: the association is not established")
	// ErrAssociationClosedBeforeConn is returned by Client and Server when the connection or the association ends before it is established.
	ErrAssociationClosedBeforeConn = errors.New("sctp: association ended before it was established")
	// ErrAssociationClosed is returned by OpenStream once the association has ended, or a shutdown has begun.
	ErrAssociationClosed = errors.New("sctp: association closed")
	// ErrResetPacketInStateNotExist is returned by Stream.Close when the stream cannot be reset, because the association is not established.
	ErrResetPacketInStateNotExist = errors.New("sctp: reset of a stream: the association is not established")
	// ErrPayloadDataStateNotExist is returned by writes when the association is not established.
	ErrPayloadDataStateNotExist = errors.New("sctp: write: the association is not established")
	// ErrHandshakeInitAck is returned by Client when no INIT was answered.
	ErrHandshakeInitAck = errors.New("sctp: handshake: no answer to INIT")
	// ErrHandshakeCookieEcho is declared for programs that compare with it; ErrHandshakeInitAck stands for both.
	ErrHandshakeCookieEcho = errors.New("sctp: handshake: no answer to COOKIE ECHO")
	// ErrAssociationRestarted is returned by reads and writes on streams of before a restart of the peer.
	ErrAssociationRestarted = errors.New("sctp: peer has restarted the association")
	// ErrOutboundPacketTooLarge is returned for a message of more than MaxMessageSize bytes.
	ErrOutboundPacketTooLarge = errors.New("sctp: message is longer than the maximum message size")
	// ErrStreamClosed is returned by writes after Stream.Close.
	ErrStreamClosed = errors.New("sctp: stream closed")
	// ErrUserInitiatedAbort is matched if the cause of that abort is User-Initiated Abort (RFC 9260, Section 3.3.10.12).
	ErrUserInitiatedAbort = errors.New("sctp: user-initiated abort")
	// ErrReadDeadlineExceeded is returned by reads after the read deadline. It matches os.ErrDeadlineExceeded.
	ErrReadDeadlineExceeded = fmt.Errorf("sctp: read: %w", os.ErrDeadlineExceeded)
)

// Errors of the parts of another implementation: nothing here returns them. They are declared so that
// programs that name them compile.
var (
	ErrSilentlyDiscard                      = errors.New("sctp: silently discard")
	ErrInitNotStoredToSend                  = errors.New("sctp: init not stored to send")
	ErrCookieEchoNotStoredToSend            = errors.New("sctp: cookie echo not stored to send")
	ErrSCTPPacketSourcePortZero             = errors.New("sctp: SCTP packet source port zero")
	ErrSCTPPacketDestinationPortZero        = errors.New("sctp: SCTP packet destination port zero")
	ErrInitChunkBundled                     = errors.New("sctp: init chunk bundled")
	ErrInitChunkVerifyTagNotZero            = errors.New("sctp: init chunk verify tag not zero")
	ErrHandleInitState                      = errors.New("sctp: handle init state")
	ErrInitAckNoCookie                      = errors.New("sctp: init ack no cookie")
	ErrInflightQueueTSNPop                  = errors.New("sctp: inflight queue TSN pop")
	ErrTSNRequestNotExist                   = errors.New("sctp: TSN request not exist")
	ErrParamterType                         = errors.New("sctp: paramter type")
	ErrChunkTypeUnhandled                   = errors.New("sctp: chunk type unhandled")
	ErrTooManyReconfigRequests              = errors.New("sctp: too many reconfig requests")
	ErrChunkTypeNotAbort                    = errors.New("sctp: chunk type not abort")
	ErrBuildAbortChunkFailed                = errors.New("sctp: build abort chunk failed")
	ErrChunkTypeNotCtError                  = errors.New("sctp: chunk type not ct error")
	ErrBuildErrorChunkFailed                = errors.New("sctp: build error chunk failed")
	ErrMarshalStreamFailed                  = errors.New("sctp: marshal stream failed")
	ErrChunkTooShort                        = errors.New("sctp: chunk too short")
	ErrChunkTypeNotHeartbeat                = errors.New("sctp: chunk type not heartbeat")
	ErrHeartbeatNotLongEnoughInfo           = errors.New("sctp: heartbeat not long enough info")
	ErrParseParamTypeFailed                 = errors.New("sctp: parse param type failed")
	ErrHeartbeatParam                       = errors.New("sctp: heartbeat param")
	ErrHeartbeatChunkUnmarshal              = errors.New("sctp: heartbeat chunk unmarshal")
	ErrHeartbeatExtraNonZero                = errors.New("sctp: heartbeat extra non zero")
	ErrHeartbeatMarshalNoInfo               = errors.New("sctp: heartbeat marshal no info")
	ErrUnimplemented                        = errors.New("sctp: unimplemented")
	ErrChunkTypeNotHeartbeatAck             = errors.New("sctp: chunk type not heartbeat ack")
	ErrHeartbeatAckParams                   = errors.New("sctp: heartbeat ack params")
	ErrHeartbeatAckNotHeartbeatInfo         = errors.New("sctp: heartbeat ack not heartbeat info")
	ErrHeartbeatAckMarshalParam             = errors.New("sctp: heartbeat ack marshal param")
	ErrChunkTypeNotTypeInit                 = errors.New("sctp: chunk type not type init")
	ErrChunkValueNotLongEnough              = errors.New("sctp: chunk value not long enough")
	ErrChunkTypeInitFlagZero                = errors.New("sctp: chunk type init flag zero")
	ErrChunkTypeInitUnmarshalFailed         = errors.New("sctp: chunk type init unmarshal failed")
	ErrChunkTypeInitMarshalFailed           = errors.New("sctp: chunk type init marshal failed")
	ErrChunkTypeInitInitateTagZero          = errors.New("sctp: chunk type init initate tag zero")
	ErrInitInboundStreamRequestZero         = errors.New("sctp: init inbound stream request zero")
	ErrInitOutboundStreamRequestZero        = errors.New("sctp: init outbound stream request zero")
	ErrInitAdvertisedReceiver1500           = errors.New("sctp: init advertised receiver1500")
	ErrInitUnknownParam                     = errors.New("sctp: init unknown param")
	ErrChunkTypeNotInitAck                  = errors.New("sctp: chunk type not init ack")
	ErrChunkNotLongEnoughForParams          = errors.New("sctp: chunk not long enough for params")
	ErrChunkTypeInitAckFlagZero             = errors.New("sctp: chunk type init ack flag zero")
	ErrInitAckUnmarshalFailed               = errors.New("sctp: init ack unmarshal failed")
	ErrInitCommonDataMarshalFailed          = errors.New("sctp: init common data marshal failed")
	ErrChunkTypeInitAckInitateTagZero       = errors.New("sctp: chunk type init ack initate tag zero")
	ErrInitAckInboundStreamRequestZero      = errors.New("sctp: init ack inbound stream request zero")
	ErrInitAckOutboundStreamRequestZero     = errors.New("sctp: init ack outbound stream request zero")
	ErrInitAckAdvertisedReceiver1500        = errors.New("sctp: init ack advertised receiver1500")
	ErrInitChunkParseParamTypeFailed        = errors.New("sctp: init chunk parse param type failed")
	ErrInitAckMarshalParam                  = errors.New("sctp: init ack marshal param")
	ErrChunkParseParamTypeFailed            = errors.New("sctp: chunk parse param type failed")
	ErrChunkMarshalParamAReconfigFailed     = errors.New("sctp: chunk marshal param a reconfig failed")
	ErrChunkMarshalParamBReconfigFailed     = errors.New("sctp: chunk marshal param b reconfig failed")
	ErrChunkTypeNotSack                     = errors.New("sctp: chunk type not sack")
	ErrSackSizeNotLargeEnoughInfo           = errors.New("sctp: sack size not large enough info")
	ErrSackSizeNotMatchPredicted            = errors.New("sctp: sack size not match predicted")
	ErrInvalidChunkSize                     = errors.New("sctp: invalid chunk size")
	ErrChunkTypeNotShutdown                 = errors.New("sctp: chunk type not shutdown")
	ErrChunkHeaderTooSmall                  = errors.New("sctp: chunk header too small")
	ErrChunkHeaderNotEnoughSpace            = errors.New("sctp: chunk header not enough space")
	ErrChunkHeaderPaddingNonZero            = errors.New("sctp: chunk header padding non zero")
	ErrPacketRawTooSmall                    = errors.New("sctp: packet raw too small")
	ErrParseSCTPChunkNotEnoughData          = errors.New("sctp: parse SCTP chunk not enough data")
	ErrUnmarshalUnknownChunkType            = errors.New("sctp: unmarshal unknown chunk type")
	ErrChecksumMismatch                     = errors.New("sctp: checksum mismatch")
	ErrZeroChecksumParamTooShort            = errors.New("sctp: zero checksum param too short")
	ErrZeroChecksumParamInvalidLength       = errors.New("sctp: zero checksum param invalid length")
	ErrParamHeaderTooShort                  = errors.New("sctp: param header too short")
	ErrParamHeaderSelfReportedLengthShorter = errors.New("sctp: param header self reported length shorter")
	ErrParamHeaderSelfReportedLengthLonger  = errors.New("sctp: param header self reported length longer")
	ErrParamHeaderParseFailed               = errors.New("sctp: param header parse failed")
	ErrUnexpectedChunkPoppedUnordered       = errors.New("sctp: unexpected chunk popped unordered")
	ErrUnexpectedChunkPoppedOrdered         = errors.New("sctp: unexpected chunk popped ordered")
	ErrUnexpectedChunkPoppedStream          = errors.New("sctp: unexpected chunk popped stream")
	ErrUnexpectedQState                     = errors.New("sctp: unexpected q state")
	ErrPendingQueueModeChangeNonEmpty       = errors.New("sctp: pending queue mode change non empty")
	ErrBuildErrorCaseHandle                 = errors.New("sctp: build error case handle")
	ErrChunkPayloadSmall                    = errors.New("sctp: chunk payload small")
	ErrChunkTypeNotCookieAck                = errors.New("sctp: chunk type not cookie ack")
	ErrChunkTypeNotCookieEcho               = errors.New("sctp: chunk type not cookie echo")
	ErrChunkTypeNotShutdownAck              = errors.New("sctp: chunk type not shutdown ack")
	ErrChunkTypeNotShutdownComplete         = errors.New("sctp: chunk type not shutdown complete")
	ErrParamPacketTooShort                  = errors.New("sctp: param packet too short")
	ErrProtocolViolationUnmarshal           = errors.New("sctp: protocol violation unmarshal")
	ErrReconfigRespParamTooShort            = errors.New("sctp: reconfig resp param too short")
	ErrSSNResetRequestParamTooShort         = errors.New("sctp: SSN reset request param too short")
	ErrInvalidAlgorithmType                 = errors.New("sctp: invalid algorithm type")
	ErrInvalidChunkLength                   = errors.New("sctp: invalid chunk length")
	ErrInvalidSCTPChunk                     = errors.New("sctp: invalid SCTP chunk")
	ErrParamTypeUnhandled                   = errors.New("sctp: param type unhandled")

	// Deprecated: use ErrUnexpectedChunkPoppedUnordered.
	ErrUnexpectedChuckPoppedUnordered = ErrUnexpectedChunkPoppedUnordered

	// Deprecated: use ErrUnexpectedChunkPoppedOrdered.
	ErrUnexpectedChuckPoppedOrdered = ErrUnexpectedChunkPoppedOrdered
)
