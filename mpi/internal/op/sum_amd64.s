//go:build !race

#include "textflag.h"

// SUM is a function (dst, a, b *byte, n int) that stores the sums of n bytes of
// elements at a and b to dst, which may be either; n is a multiple of 64, not 0.
#define SUM(name, add) \
TEXT name(SB), NOSPLIT, $0-32 \
	MOVQ  dst+0(FP), DI  \
	MOVQ  a+8(FP), SI    \
	MOVQ  b+16(FP), DX   \
	MOVQ  n+24(FP), CX   \
	XORQ  AX, AX         \
loop:                    \
	MOVOU (SI)(AX*1), X0 \
	MOVOU 16(SI)(AX*1), X1 \
	MOVOU 32(SI)(AX*1), X2 \
	MOVOU 48(SI)(AX*1), X3 \
	MOVOU (DX)(AX*1), X4 \
	MOVOU 16(DX)(AX*1), X5 \
	MOVOU 32(DX)(AX*1), X6 \
	MOVOU 48(DX)(AX*1), X7 \
	add   X4, X0         \
	add   X5, X1         \
	add   X6, X2         \
	add   X7, X3         \
	MOVOU X0, (DI)(AX*1) \
	MOVOU X1, 16(DI)(AX*1) \
	MOVOU X2, 32(DI)(AX*1) \
	MOVOU X3, 48(DI)(AX*1) \
	ADDQ  $64, AX        \
	CMPQ  AX, CX         \
	JLT   loop           \
	RET

SUM(·sumFloat32, ADDPS)
SUM(·sumFloat64, ADDPD)
SUM(·sumInt8, PADDB)
SUM(·sumInt16, PADDW)
SUM(·sumInt32, PADDL)
SUM(·sumInt64, PADDQ)
