#include "textflag.h"

// CRC_REST takes the CX bytes at SI to AX, eight at a time, and stores it to ret.
#define CRC_REST(ret) \
words: \
	CMPQ CX, $8; \
	JLT  bytes; \
	CRC32Q (SI), AX; \
	ADDQ $8, SI; \
	SUBQ $8, CX; \
	JMP  words; \
bytes: \
	TESTQ CX, CX; \
	JEQ   end; \
	CRC32B (SI), AX; \
	INCQ SI; \
	DECQ CX; \
	JMP  bytes; \
end: \
	MOVL AX, ret; \
	RET

// JOIN64 joins the accumulators Z0 to Z3 to one, Z3.
#define JOIN64 \
	VPCLMULQDQ $0x00, Z31, Z0, Z5; \
	VPCLMULQDQ $0x11, Z31, Z0, Z6; \
	VPTERNLOGQ $0x96, Z5, Z6, Z1; \
	VPCLMULQDQ $0x00, Z31, Z1, Z5; \
	VPCLMULQDQ $0x11, Z31, Z1, Z6; \
	VPTERNLOGQ $0x96, Z5, Z6, Z2; \
	VPCLMULQDQ $0x00, Z31, Z2, Z5; \
	VPCLMULQDQ $0x11, Z31, Z2, Z6; \
	VPTERNLOGQ $0x96, Z5, Z6, Z3

// REDUCE takes the 16 bytes of x to AX.
#define REDUCE(x) \
	VMOVQ x, R8; \
	CRC32Q R8, AX; \
	VPEXTRQ $1, x, R9; \
	CRC32Q R9, AX

// REDUCE64 takes the 64 bytes of Z3 to AX.
#define REDUCE64 \
	XORL AX, AX; \
	REDUCE(X3); \
	VEXTRACTI32X4 $1, Z3, X4; \
	REDUCE(X4); \
	VEXTRACTI32X4 $2, Z3, X5; \
	REDUCE(X5); \
	VEXTRACTI32X4 $3, Z3, X6; \
	REDUCE(X6); \
	VZEROUPPER

// JOIN32 joins the accumulators Y0 to Y3 to one, Y3.
#define JOIN32 \
	VPCLMULQDQ $0x00, Y13, Y0, Y5; \
	VPCLMULQDQ $0x11, Y13, Y0, Y6; \
	VPXOR Y5, Y1, Y1; \
	VPXOR Y6, Y1, Y1; \
	VPCLMULQDQ $0x00, Y13, Y1, Y5; \
	VPCLMULQDQ $0x11, Y13, Y1, Y6; \
	VPXOR Y5, Y2, Y2; \
	VPXOR Y6, Y2, Y2; \
	VPCLMULQDQ $0x00, Y13, Y2, Y5; \
	VPCLMULQDQ $0x11, Y13, Y2, Y6; \
	VPXOR Y5, Y3, Y3; \
	VPXOR Y6, Y3, Y3

// REDUCE32 takes the 32 bytes of Y3 to AX.
#define REDUCE32 \
	XORL AX, AX; \
	REDUCE(X3); \
	VEXTRACTI128 $1, Y3, X4; \
	REDUCE(X4); \
	VZEROUPPER

// func fold(p *byte, n int, init uint32, k *[16]uint64) uint32
//
// fold returns the CRC register after the n bytes at p, at least 256, when it was
// init before. Four accumulators of 64 bytes each move forward by 256 bytes a
// turn; in the end they are joined to one, of 64 bytes that have the same
// remainder, and these and the bytes left over go through the CRC instruction.
TEXT ·fold(SB), NOSPLIT, $0-36
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVL init+16(FP), AX
	MOVQ k+24(FP), DX
	VMOVDQU64 (DX), Z30
	VMOVDQU64 64(DX), Z31
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVD AX, X4
	VPXORQ Z4, Z0, Z0
	ADDQ $256, SI
	SUBQ $256, CX

loop:
	CMPQ CX, $256
	JLT  join
	VPCLMULQDQ $0x00, Z30, Z0, Z5
	VPCLMULQDQ $0x00, Z30, Z1, Z6
	VPCLMULQDQ $0x00, Z30, Z2, Z7
	VPCLMULQDQ $0x00, Z30, Z3, Z8
	VPCLMULQDQ $0x11, Z30, Z0, Z0
	VPCLMULQDQ $0x11, Z30, Z1, Z1
	VPCLMULQDQ $0x11, Z30, Z2, Z2
	VPCLMULQDQ $0x11, Z30, Z3, Z3
	VPTERNLOGQ $0x96, (SI), Z5, Z0
	VPTERNLOGQ $0x96, 64(SI), Z6, Z1
	VPTERNLOGQ $0x96, 128(SI), Z7, Z2
	VPTERNLOGQ $0x96, 192(SI), Z8, Z3
	ADDQ $256, SI
	SUBQ $256, CX
	JMP  loop

join:
	JOIN64

rest:
	CMPQ CX, $64
	JLT  done
	VPCLMULQDQ $0x00, Z31, Z3, Z5
	VPCLMULQDQ $0x11, Z31, Z3, Z6
	VMOVDQU64 (SI), Z3
	VPTERNLOGQ $0x96, Z5, Z6, Z3
	ADDQ $64, SI
	SUBQ $64, CX
	JMP  rest

done:
	REDUCE64

	CRC_REST(ret+32(FP))

// func fold32(p *byte, n int, init uint32, k *[8]uint64) uint32
//
// fold32 is fold with registers of 32 bytes: four accumulators move forward by 128
// bytes a turn. The bytes are at least 128.
TEXT ·fold32(SB), NOSPLIT, $0-36
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVL init+16(FP), AX
	MOVQ k+24(FP), DX
	VMOVDQU (DX), Y12
	VMOVDQU 32(DX), Y13
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVD AX, X4
	VPXOR Y4, Y0, Y0
	ADDQ $128, SI
	SUBQ $128, CX

loop:
	CMPQ CX, $128
	JLT  join
	VPCLMULQDQ $0x00, Y12, Y0, Y4
	VPCLMULQDQ $0x00, Y12, Y1, Y5
	VPCLMULQDQ $0x00, Y12, Y2, Y6
	VPCLMULQDQ $0x00, Y12, Y3, Y7
	VPCLMULQDQ $0x11, Y12, Y0, Y0
	VPCLMULQDQ $0x11, Y12, Y1, Y1
	VPCLMULQDQ $0x11, Y12, Y2, Y2
	VPCLMULQDQ $0x11, Y12, Y3, Y3
	VPXOR (SI), Y4, Y4
	VPXOR 32(SI), Y5, Y5
	VPXOR 64(SI), Y6, Y6
	VPXOR 96(SI), Y7, Y7
	VPXOR Y4, Y0, Y0
	VPXOR Y5, Y1, Y1
	VPXOR Y6, Y2, Y2
	VPXOR Y7, Y3, Y3
	ADDQ $128, SI
	SUBQ $128, CX
	JMP  loop

join:
	JOIN32

rest:
	CMPQ CX, $32
	JLT  done
	VPCLMULQDQ $0x00, Y13, Y3, Y5
	VPCLMULQDQ $0x11, Y13, Y3, Y6
	VPXOR (SI), Y5, Y3
	VPXOR Y6, Y3, Y3
	ADDQ $32, SI
	SUBQ $32, CX
	JMP  rest

done:
	REDUCE32

	CRC_REST(ret+32(FP))

// func foldCopy(dst, src *byte, n int, init uint32, k *[16]uint64) uint32
//
// foldCopy is fold for the n bytes at src, of which it copies as many as make whole
// blocks of 64 to dst.
TEXT ·foldCopy(SB), NOSPLIT, $0-44
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL init+24(FP), AX
	MOVQ k+32(FP), DX
	VMOVDQU64 (DX), Z30
	VMOVDQU64 64(DX), Z31
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVDQU64 Z0, (DI)
	VMOVDQU64 Z1, 64(DI)
	VMOVDQU64 Z2, 128(DI)
	VMOVDQU64 Z3, 192(DI)
	VMOVD AX, X4
	VPXORQ Z4, Z0, Z0
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX

loop:
	CMPQ CX, $256
	JLT  join
	VMOVDQU64 (SI), Z9
	VMOVDQU64 64(SI), Z10
	VMOVDQU64 128(SI), Z11
	VMOVDQU64 192(SI), Z12
	VPCLMULQDQ $0x00, Z30, Z0, Z5
	VPCLMULQDQ $0x00, Z30, Z1, Z6
	VPCLMULQDQ $0x00, Z30, Z2, Z7
	VPCLMULQDQ $0x00, Z30, Z3, Z8
	VPCLMULQDQ $0x11, Z30, Z0, Z0
	VPCLMULQDQ $0x11, Z30, Z1, Z1
	VPCLMULQDQ $0x11, Z30, Z2, Z2
	VPCLMULQDQ $0x11, Z30, Z3, Z3
	VMOVDQU64 Z9, (DI)
	VMOVDQU64 Z10, 64(DI)
	VMOVDQU64 Z11, 128(DI)
	VMOVDQU64 Z12, 192(DI)
	VPTERNLOGQ $0x96, Z9, Z5, Z0
	VPTERNLOGQ $0x96, Z10, Z6, Z1
	VPTERNLOGQ $0x96, Z11, Z7, Z2
	VPTERNLOGQ $0x96, Z12, Z8, Z3
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	JMP  loop

join:
	JOIN64

rest:
	CMPQ CX, $64
	JLT  done
	VPCLMULQDQ $0x00, Z31, Z3, Z5
	VPCLMULQDQ $0x11, Z31, Z3, Z6
	VMOVDQU64 (SI), Z3
	VMOVDQU64 Z3, (DI)
	VPTERNLOGQ $0x96, Z5, Z6, Z3
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, CX
	JMP  rest

done:
	REDUCE64

	CRC_REST(ret+40(FP))

// func foldCopy32(dst, src *byte, n int, init uint32, k *[8]uint64) uint32
//
// foldCopy32 is fold32 for the n bytes at src, of which it copies as many as make
// whole blocks of 32 to dst.
TEXT ·foldCopy32(SB), NOSPLIT, $0-44
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL init+24(FP), AX
	MOVQ k+32(FP), DX
	VMOVDQU (DX), Y12
	VMOVDQU 32(DX), Y13
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	VMOVD AX, X4
	VPXOR Y4, Y0, Y0
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $128, CX

loop:
	CMPQ CX, $128
	JLT  join
	VPCLMULQDQ $0x00, Y12, Y0, Y4
	VPCLMULQDQ $0x00, Y12, Y1, Y5
	VPCLMULQDQ $0x00, Y12, Y2, Y6
	VPCLMULQDQ $0x00, Y12, Y3, Y7
	VPCLMULQDQ $0x11, Y12, Y0, Y0
	VPCLMULQDQ $0x11, Y12, Y1, Y1
	VPCLMULQDQ $0x11, Y12, Y2, Y2
	VPCLMULQDQ $0x11, Y12, Y3, Y3
	VMOVDQU (SI), Y8
	VMOVDQU 32(SI), Y9
	VMOVDQU 64(SI), Y10
	VMOVDQU 96(SI), Y11
	VPXOR Y4, Y0, Y0
	VPXOR Y5, Y1, Y1
	VPXOR Y6, Y2, Y2
	VPXOR Y7, Y3, Y3
	VMOVDQU Y8, (DI)
	VMOVDQU Y9, 32(DI)
	VMOVDQU Y10, 64(DI)
	VMOVDQU Y11, 96(DI)
	VPXOR Y8, Y0, Y0
	VPXOR Y9, Y1, Y1
	VPXOR Y10, Y2, Y2
	VPXOR Y11, Y3, Y3
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $128, CX
	JMP  loop

join:
	JOIN32

rest:
	CMPQ CX, $32
	JLT  done
	VPCLMULQDQ $0x00, Y13, Y3, Y5
	VPCLMULQDQ $0x11, Y13, Y3, Y6
	VMOVDQU (SI), Y3
	VMOVDQU Y3, (DI)
	VPXOR Y5, Y3, Y3
	VPXOR Y6, Y3, Y3
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $32, CX
	JMP  rest

done:
	REDUCE32

	CRC_REST(ret+40(FP))

// func words(p *byte, n int, init uint32) uint32
//
// words is fold by the CRC instruction alone, for any number of bytes.
TEXT ·words(SB), NOSPLIT, $0-28
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVL init+16(FP), AX

	CRC_REST(ret+24(FP))

// func vpclmulqdq() bool
//
// vpclmulqdq reports whether the processor has the instruction of that name. It needs
// leaf 7 of CPUID, which those with AVX2 have.
TEXT ·vpclmulqdq(SB), NOSPLIT, $0-1
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $10, CX
	ANDL $1, CX
	MOVB CX, ret+0(FP)
	RET
