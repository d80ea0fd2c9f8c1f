//go:build !purego

#include "textflag.h"

// The kernels of packed matrices; see vector_amd64.s. Four rows i..i+3 go together: the
// first is at row, the others, each longer by one, at R9, R10 and R11.

#define NEXT_ROWS(row, i) \
	LEAQ 8(row)(i*8), R9    \
	LEAQ 16(R9)(i*8), R10   \
	LEAQ 24(R10)(i*8), R11

// Columns j..j+3 of the four rows.
#define LOAD_ROWS(row, j, a, b, c, d) \
	VMOVUPD (row)(j*8), a \
	VMOVUPD (R9)(j*8), b  \
	VMOVUPD (R10)(j*8), c \
	VMOVUPD (R11)(j*8), d

#define STORE_ROWS(a, b, c, d) \
	VMOVUPD a, (DI)(AX*8)  \
	VMOVUPD b, (R9)(AX*8)  \
	VMOVUPD c, (R10)(AX*8) \
	VMOVUPD d, (R11)(AX*8)

// z_i, z_i+1, z_i+2, z_i+3, each in all lanes.
#define BROADCAST4(i, a, b, c, d) \
	VBROADCASTSD (SI)(i*8), a   \
	VBROADCASTSD 8(SI)(i*8), b  \
	VBROADCASTSD 16(SI)(i*8), c \
	VBROADCASTSD 24(SI)(i*8), d

// Four columns times what each row has in all lanes.
#define TIMES_ROWS \
	VMULPD Y0, Y12, Y4 \
	VMULPD Y0, Y13, Y5 \
	VMULPD Y0, Y14, Y6 \
	VMULPD Y0, Y15, Y7

// The first half of transposing the rows Y1..Y4: pairs of them, even columns and odd.
#define PAIRS \
	VUNPCKLPD Y2, Y1, Y5 \
	VUNPCKHPD Y2, Y1, Y6 \
	VUNPCKLPD Y4, Y3, Y7 \
	VUNPCKHPD Y4, Y3, Y8

// func packedOuterAVX2(dst, z []float64)
//
// Rows are written four at a time, i..i+3: columns below i in groups, then the triangle
// on the diagonal.
TEXT ·packedOuterAVX2(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ z_base+24(FP), SI
	MOVQ z_len+32(FP), CX
	XORQ R8, R8             // i

rows:
	LEAQ         4(R8), DX
	CMPQ         DX, CX
	JGT          row
	NEXT_ROWS(DI, R8)
	VMOVUPD      (SI)(R8*8), Y1
	VMULPD       Y1, Y1, Y2        // z_i²
	BROADCAST4(R8, Y12, Y13, Y14, Y15)
	VADDPD       Y12, Y12, Y12     // 2·z_i
	VADDPD       Y13, Y13, Y13
	VADDPD       Y14, Y14, Y14
	VADDPD       Y15, Y15, Y15
	XORQ         AX, AX            // j

block:
	CMPQ    AX, R8
	JGE     triangle
	VMOVUPD (SI)(AX*8), Y0
	TIMES_ROWS
	STORE_ROWS(Y4, Y5, Y6, Y7)
	ADDQ    $4, AX
	JMP     block

triangle:
	VMULPD       Y1, Y13, Y5
	VMULPD       Y1, Y14, Y6
	VMULPD       Y1, Y15, Y7
	VBLENDPD     $2, Y2, Y5, Y5
	VBLENDPD     $4, Y2, Y6, Y6
	VBLENDPD     $8, Y2, Y7, Y7
	VMOVSD       X2, (DI)(R8*8)
	VMOVUPD      X5, (R9)(R8*8)
	VMOVUPD      X6, (R10)(R8*8)
	VEXTRACTF128 $1, Y6, X6
	VMOVSD       X6, 16(R10)(R8*8)
	VMOVUPD      Y7, (R11)(R8*8)
	LEAQ         32(R11)(R8*8), DI
	MOVQ         DX, R8
	JMP          rows

row:
	CMPQ         R8, CX
	JGE          done
	VBROADCASTSD (SI)(R8*8), Y0
	VMULSD       X0, X0, X2     // z_i²
	VADDPD       Y0, Y0, Y0     // 2·z_i
	XORQ         AX, AX         // j
	MOVQ         R8, BX
	ANDQ         $~3, BX
	JEQ          rest

group:
	VMULPD  (SI)(AX*8), Y0, Y1
	VMOVUPD Y1, (DI)(AX*8)
	ADDQ    $4, AX
	CMPQ    AX, BX
	JLT     group

rest:
	CMPQ   AX, R8
	JGE    diagonal
	VMULSD (SI)(AX*8), X0, X1
	VMOVSD X1, (DI)(AX*8)
	INCQ   AX
	JMP    rest

diagonal:
	VMOVSD X2, (DI)(R8*8)
	INCQ   R8
	LEAQ   (DI)(R8*8), DI
	JMP    row

done:
	VZEROUPPER
	RET

// func packedRankOneAVX2(p []float64, c float64, k []float64)
//
// Rows four at a time, as in packedOuterAVX2.
TEXT ·packedRankOneAVX2(SB), NOSPLIT, $0-56
	MOVQ   p_base+0(FP), DI
	VMOVSD c+24(FP), X3
	MOVQ   k_base+32(FP), SI
	MOVQ   k_len+40(FP), CX
	XORQ   R8, R8            // i

rows:
	LEAQ         4(R8), DX
	CMPQ         DX, CX
	JGT          row
	NEXT_ROWS(DI, R8)
	VMULSD       (SI)(R8*8), X3, X12
	VMULSD       8(SI)(R8*8), X3, X13
	VMULSD       16(SI)(R8*8), X3, X14
	VMULSD       24(SI)(R8*8), X3, X15
	VBROADCASTSD X12, Y12
	VBROADCASTSD X13, Y13
	VBROADCASTSD X14, Y14
	VBROADCASTSD X15, Y15
	XORQ         AX, AX            // j

block:
	CMPQ    AX, R8
	JGE     triangle
	VMOVUPD (SI)(AX*8), Y0
	TIMES_ROWS
	LOAD_ROWS(DI, AX, Y8, Y9, Y10, Y11)
	VSUBPD  Y4, Y8, Y8
	VSUBPD  Y5, Y9, Y9
	VSUBPD  Y6, Y10, Y10
	VSUBPD  Y7, Y11, Y11
	STORE_ROWS(Y8, Y9, Y10, Y11)
	ADDQ    $4, AX
	JMP     block

triangle:
	VMOVUPD      (SI)(R8*8), Y0
	VMULSD       X0, X12, X4
	VMULPD       X0, X13, X5
	VMULPD       Y0, Y14, Y6
	VMULPD       Y0, Y15, Y7
	VEXTRACTF128 $1, Y6, X1
	VMOVSD       (DI)(R8*8), X8
	VMOVUPD      (R9)(R8*8), X9
	VMOVUPD      (R10)(R8*8), X10
	VMOVSD       16(R10)(R8*8), X2
	VMOVUPD      (R11)(R8*8), Y11
	VSUBSD       X4, X8, X8
	VSUBPD       X5, X9, X9
	VSUBPD       X6, X10, X10
	VSUBSD       X1, X2, X2
	VSUBPD       Y7, Y11, Y11
	VMOVSD       X8, (DI)(R8*8)
	VMOVUPD      X9, (R9)(R8*8)
	VMOVUPD      X10, (R10)(R8*8)
	VMOVSD       X2, 16(R10)(R8*8)
	VMOVUPD      Y11, (R11)(R8*8)
	LEAQ         32(R11)(R8*8), DI
	MOVQ         DX, R8
	JMP          rows

row:
	// Rows that are no four any more; i counts from here on to i+1 within a row.
	CMPQ         R8, CX
	JGE          done
	VMULSD       (SI)(R8*8), X3, X0
	VBROADCASTSD X0, Y0             // k_i·c
	INCQ         R8
	XORQ         AX, AX             // j
	MOVQ         R8, BX
	ANDQ         $~3, BX
	JEQ          rest

group:
	VMULPD  (SI)(AX*8), Y0, Y1
	VMOVUPD (DI)(AX*8), Y2
	VSUBPD  Y1, Y2, Y2
	VMOVUPD Y2, (DI)(AX*8)
	ADDQ    $4, AX
	CMPQ    AX, BX
	JLT     group

rest:
	CMPQ   AX, R8
	JGE    next
	VMULSD (SI)(AX*8), X0, X1
	VMOVSD (DI)(AX*8), X2
	VSUBSD X1, X2, X2
	VMOVSD X2, (DI)(AX*8)
	INCQ   AX
	JMP    rest

next:
	LEAQ (DI)(R8*8), DI
	JMP  row

done:
	VZEROUPPER
	RET

// func packedMulAVX2(dst, p, z []float64)
//
// Four rows i..i+3 at once. Y0 holds their sums s, a lane a row, and takes the columns
// of a 4×4 block, which is transposed for that, in ascending order; what the rows add
// to dst[:i] they add one after the other, as in Go.
TEXT ·packedMulAVX2(SB), NOSPLIT, $0-72
	MOVQ dst_base+0(FP), DI
	MOVQ p_base+24(FP), R8
	MOVQ z_base+48(FP), SI
	MOVQ z_len+56(FP), CX
	XORQ BX, BX             // i

rows:
	LEAQ         4(BX), DX
	CMPQ         DX, CX
	JGT          last
	NEXT_ROWS(R8, BX)
	BROADCAST4(BX, Y12, Y13, Y14, Y15)
	VXORPD       Y0, Y0, Y0
	XORQ         AX, AX            // j

block:
	CMPQ         AX, BX
	JGE          diagonal
	LOAD_ROWS(R8, AX, Y1, Y2, Y3, Y4)
	VMULPD       Y12, Y1, Y5
	VMULPD       Y13, Y2, Y6
	VMULPD       Y14, Y3, Y7
	VMULPD       Y15, Y4, Y8
	VADDPD       (DI)(AX*8), Y5, Y5
	VADDPD       Y6, Y5, Y5
	VADDPD       Y7, Y5, Y5
	VADDPD       Y8, Y5, Y5
	VMOVUPD      Y5, (DI)(AX*8)
	PAIRS
	VPERM2F128   $0x20, Y7, Y5, Y1
	VPERM2F128   $0x20, Y8, Y6, Y2
	VPERM2F128   $0x31, Y7, Y5, Y3
	VPERM2F128   $0x31, Y8, Y6, Y4
	BROADCAST4(AX, Y5, Y6, Y7, Y8)
	VMULPD       Y5, Y1, Y1
	VMULPD       Y6, Y2, Y2
	VMULPD       Y7, Y3, Y3
	VMULPD       Y8, Y4, Y4
	VADDPD       Y1, Y0, Y0
	VADDPD       Y2, Y0, Y0
	VADDPD       Y3, Y0, Y0
	VADDPD       Y4, Y0, Y0
	ADDQ         $4, AX
	JMP          block

diagonal:
	// The block on the diagonal, whose upper half is the lower one's mirror image: the
	// lanes that the packed rows do not have are of the rows behind, and replaced.
	LOAD_ROWS(R8, BX, Y1, Y2, Y3, Y4)
	PAIRS
	VPERM2F128 $0x20, Y7, Y5, Y9
	VPERM2F128 $0x20, Y8, Y6, Y10
	VPERM2F128 $0x31, Y7, Y5, Y11
	VBLENDPD   $0x1, Y2, Y10, Y10
	VBLENDPD   $0x3, Y3, Y11, Y11
	VMULPD     Y12, Y9, Y9
	VMULPD     Y13, Y10, Y10
	VMULPD     Y14, Y11, Y11
	VMULPD     Y15, Y4, Y4
	VADDPD     Y9, Y0, Y0
	VADDPD     Y10, Y0, Y0
	VADDPD     Y11, Y0, Y0
	VADDPD     Y4, Y0, Y0
	VMOVUPD    Y0, (DI)(BX*8)
	LEAQ       32(R11)(BX*8), R8
	MOVQ       DX, BX
	JMP        rows

last:
	// Rows that are no block any more, one by one.
	CMPQ         BX, CX
	JGE          done
	VBROADCASTSD (SI)(BX*8), Y12
	VXORPD       X0, X0, X0
	XORQ         AX, AX
	MOVQ         BX, DX
	ANDQ         $~3, DX
	JEQ          rest

group:
	VMOVUPD      (R8)(AX*8), Y1
	VMULPD       Y12, Y1, Y2
	VMULPD       (SI)(AX*8), Y1, Y3
	VADDPD       (DI)(AX*8), Y2, Y2
	VMOVUPD      Y2, (DI)(AX*8)
	VEXTRACTF128 $1, Y3, X4
	VADDSD       X3, X0, X0
	VUNPCKHPD    X3, X3, X3
	VADDSD       X3, X0, X0
	VADDSD       X4, X0, X0
	VUNPCKHPD    X4, X4, X4
	VADDSD       X4, X0, X0
	ADDQ         $4, AX
	CMPQ         AX, DX
	JLT          group

rest:
	CMPQ   AX, BX
	JGE    end
	VMOVSD (R8)(AX*8), X1
	VMULSD X12, X1, X2
	VMULSD (SI)(AX*8), X1, X3
	VADDSD (DI)(AX*8), X2, X2
	VMOVSD X2, (DI)(AX*8)
	VADDSD X3, X0, X0
	INCQ   AX
	JMP    rest

end:
	VMOVSD (R8)(BX*8), X1
	VMULSD X12, X1, X1
	VADDSD X1, X0, X0
	VMOVSD X0, (DI)(BX*8)
	INCQ   BX
	LEAQ   (R8)(BX*8), R8
	JMP    last

done:
	VZEROUPPER
	RET

// What the eight rows i..i+7 of packedStep have in all lanes: a·k of the first four in Y9..Y12
// and their z in Y13..Y15 and at Z3, a·k of the others from M4 on and their z from Z4 on.
#define Z3 0(DX)
#define M4 32(DX)
#define M5 64(DX)
#define M6 96(DX)
#define M7 128(DX)
#define Z4 160(DX)
#define Z5 192(DX)
#define Z6 224(DX)
#define Z7 256(DX)

// Row pointers from R8 on, at column i; BX is 8·i, Y0 is a.
#define FOUR_ROWS \
	LEAQ         8(R8)(BX*1), R9   \
	LEAQ         16(R9)(BX*1), R10 \
	LEAQ         24(R10)(BX*1), R11 \
	VBROADCASTSD 0(CX), Y9         \
	VBROADCASTSD 8(CX), Y10        \
	VBROADCASTSD 16(CX), Y11       \
	VBROADCASTSD 24(CX), Y12       \
	VMULPD       Y0, Y9, Y9        \
	VMULPD       Y0, Y10, Y10      \
	VMULPD       Y0, Y11, Y11      \
	VMULPD       Y0, Y12, Y12      \
	VBROADCASTSD 0(SI), Y13        \
	VBROADCASTSD 8(SI), Y14        \
	VBROADCASTSD 16(SI), Y15       \
	VBROADCASTSD 24(SI), Y1        \
	VMOVUPD      Y1, Z3

// a·k and z of row i+n, for n ≥ 4.
#define LATER_ROW(n, m, z) \
	VBROADCASTSD 8*n(CX), Y1 \
	VMULPD       Y0, Y1, Y1  \
	VMOVUPD      Y1, m       \
	VBROADCASTSD 8*n(SI), Y1 \
	VMOVUPD      Y1, z

// Columns j..j+3 of four rows; AX is 8·(j−i). Y8 is dst there; s are the rows' sums, a lane a
// row, which take products by columns, in ascending order.
#define STEP(r0, r1, r2, r3, m0, m1, m2, m3, z0, z1, z2, z3, s) \
	VMOVUPD    (CX)(AX*1), Y7   \
	VMOVUPD    (r0)(AX*1), Y2   \
	VMOVUPD    (r1)(AX*1), Y3   \
	VMOVUPD    (r2)(AX*1), Y4   \
	VMOVUPD    (r3)(AX*1), Y5   \
	VMULPD     m0, Y7, Y6       \
	VSUBPD     Y6, Y2, Y2       \
	VMULPD     m1, Y7, Y6       \
	VSUBPD     Y6, Y3, Y3       \
	VMULPD     m2, Y7, Y6       \
	VSUBPD     Y6, Y4, Y4       \
	VMULPD     m3, Y7, Y6       \
	VSUBPD     Y6, Y5, Y5       \
	VMOVUPD    Y2, (r0)(AX*1)   \
	VMOVUPD    Y3, (r1)(AX*1)   \
	VMOVUPD    Y4, (r2)(AX*1)   \
	VMOVUPD    Y5, (r3)(AX*1)   \
	VMULPD     z0, Y2, Y6       \
	VMULPD     z1, Y3, Y7       \
	VADDPD     Y7, Y6, Y6       \
	VADDPD     Y6, Y8, Y8       \
	VMULPD     z2, Y4, Y6       \
	VMULPD     z3, Y5, Y7       \
	VADDPD     Y7, Y6, Y6       \
	VADDPD     Y6, Y8, Y8       \
	VMOVUPD    (SI)(AX*1), Y7   \
	VMULPD     Y7, Y2, Y2       \
	VMULPD     Y7, Y3, Y3       \
	VMULPD     Y7, Y4, Y4       \
	VMULPD     Y7, Y5, Y5       \
	VUNPCKLPD  Y3, Y2, Y6       \
	VUNPCKHPD  Y3, Y2, Y2       \
	VUNPCKLPD  Y5, Y4, Y3       \
	VUNPCKHPD  Y5, Y4, Y4       \
	VPERM2F128 $0x20, Y3, Y6, Y5 \
	VPERM2F128 $0x20, Y4, Y2, Y7 \
	VPERM2F128 $0x31, Y3, Y6, Y3 \
	VPERM2F128 $0x31, Y4, Y2, Y4 \
	VADDPD     Y5, s, s         \
	VADDPD     Y7, s, s         \
	VADDPD     Y3, s, s         \
	VADDPD     Y4, s, s

// The block on the diagonal, off bytes behind column i, whose upper half is the lower one's
// mirror image: the lanes that the packed rows do not have are of the rows behind, and stay.
#define DIAGONAL(off, r0, r1, r2, r3, m0, m1, m2, m3, z0, z1, z2, z3, s) \
	VMOVUPD    off(CX), Y7      \
	VMOVUPD    off(r0), Y2      \
	VMULPD     m0, Y7, Y6       \
	VSUBPD     Y6, Y2, Y6       \
	VBLENDPD   $1, Y6, Y2, Y2   \
	VMOVUPD    Y2, off(r0)      \
	VMOVUPD    off(r1), Y3      \
	VMULPD     m1, Y7, Y6       \
	VSUBPD     Y6, Y3, Y6       \
	VBLENDPD   $3, Y6, Y3, Y3   \
	VMOVUPD    Y3, off(r1)      \
	VMOVUPD    off(r2), Y4      \
	VMULPD     m2, Y7, Y6       \
	VSUBPD     Y6, Y4, Y6       \
	VBLENDPD   $7, Y6, Y4, Y4   \
	VMOVUPD    Y4, off(r2)      \
	VMOVUPD    off(r3), Y5      \
	VMULPD     m3, Y7, Y6       \
	VSUBPD     Y6, Y5, Y5       \
	VMOVUPD    Y5, off(r3)      \
	VUNPCKLPD  Y3, Y2, Y6       \
	VUNPCKHPD  Y3, Y2, Y7       \
	VUNPCKLPD  Y5, Y4, Y8       \
	VUNPCKHPD  Y5, Y4, Y2       \
	VPERM2F128 $0x20, Y2, Y7, Y7 \
	VBLENDPD   $1, Y3, Y7, Y7   \
	VPERM2F128 $0x20, Y8, Y6, Y2 \
	VPERM2F128 $0x31, Y8, Y6, Y6 \
	VBLENDPD   $3, Y4, Y6, Y6   \
	VMULPD     z0, Y2, Y2       \
	VMULPD     z1, Y7, Y7       \
	VMULPD     z2, Y6, Y6       \
	VMULPD     z3, Y5, Y5       \
	VADDPD     Y5, Y6, Y6       \
	VADDPD     Y7, Y2, Y5       \
	VADDPD     Y5, s, Y5        \
	VADDPD     Y2, s, Y2        \
	VADDPD     Y7, Y2, Y2       \
	VBLENDPD   $12, Y2, Y5, Y5  \
	VADDPD     Y6, Y5, Y5       \
	VMOVUPD    Y5, off(DI)

// func packedStepAVX2(dst, p []float64, a float64, k, z []float64)
//
// The rows before len(z) &^ 3, eight at a time: the sums of a row wait for each other, and
// those of four rows more fill the time. What rows add to dst they add by pairs, as in Go.
// Where the fours are odd in number the first, which is a diagonal alone, goes by itself.
TEXT ·packedStepAVX2(SB), NOSPLIT, $336-104
	MOVQ dst_base+0(FP), DI
	MOVQ p_base+24(FP), R8
	MOVQ k_base+56(FP), CX
	MOVQ z_base+80(FP), SI
	MOVQ z_len+88(FP), AX
	LEAQ 31(SP), DX
	ANDQ $~31, DX
	MOVQ AX, BX
	SHRQ $3, BX
	MOVQ BX, 288(DX)        // times eight rows
	XORQ BX, BX
	ANDQ $4, AX
	JEQ  eight
	VBROADCASTSD a+48(FP), Y0
	FOUR_ROWS
	VXORPD Y0, Y0, Y0
	DIAGONAL(0, R8, R9, R10, R11, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Z3, Y0)
	ADDQ $112, R8
	ADDQ $32, BX
	ADDQ $32, CX
	ADDQ $32, SI
	ADDQ $32, DI

eight:
	DECQ 288(DX)
	JLT  done
	VBROADCASTSD a+48(FP), Y0
	FOUR_ROWS
	LEAQ 32(R11)(BX*1), R12
	LEAQ 40(R12)(BX*1), R13
	LEAQ 48(R13)(BX*1), R14
	LEAQ 56(R14)(BX*1), R15
	LATER_ROW(4, M4, Z4)
	LATER_ROW(5, M5, Z5)
	LATER_ROW(6, M6, Z6)
	LATER_ROW(7, M7, Z7)
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	MOVQ BX, AX
	NEGQ AX
	JEQ  diagonals

block:
	VMOVUPD (DI)(AX*1), Y8
	STEP(R8, R9, R10, R11, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Z3, Y0)
	STEP(R12, R13, R14, R15, M4, M5, M6, M7, Z4, Z5, Z6, Z7, Y1)
	VMOVUPD Y8, (DI)(AX*1)
	ADDQ    $32, AX
	JLT     block

diagonals:
	DIAGONAL(0, R8, R9, R10, R11, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Z3, Y0)
	VMOVUPD (DI), Y8
	STEP(R12, R13, R14, R15, M4, M5, M6, M7, Z4, Z5, Z6, Z7, Y1)
	VMOVUPD Y8, (DI)
	DIAGONAL(32, R12, R13, R14, R15, M4, M5, M6, M7, Z4, Z5, Z6, Z7, Y1)
	LEAQ 128(R15)(BX*1), R8
	ADDQ $64, BX
	ADDQ $64, CX
	ADDQ $64, SI
	ADDQ $64, DI
	JMP  eight

done:
	VZEROUPPER
	RET

// A partial sum a, b of eight z over the columns of a list of hashedColumns that are below R12; last is the first other.
// As all here, columns are times 8.
#define PARTIAL_SUM(list, last, a, b, next, end) \
	MOVQ         list(DX), AX       \
	VXORPD       a, a, a            \
	VXORPD       b, b, b            \
next: \
	MOVLQZX      (AX), last         \
	CMPQ         last, R12          \
	JGE          end                \
	PRODUCTS(last)                  \
	VADDPD       Y8, a, a           \
	VADDPD       Y9, b, b           \
	ADDQ         $4, AX             \
	JMP          next               \
end:

// A column of the row at R11 times that of eight z.
#define PRODUCTS(column) \
	VBROADCASTSD (R11)(column*1), Y9       \
	VMULPD       (SI)(column*8), Y9, Y8    \
	VMULPD       32(SI)(column*8), Y9, Y9

// A column is added to the sums, if the row has it.
#define AND_COLUMN(column, skip) \
	CMPQ         column, R10        \
	JGE          skip               \
	PRODUCTS(column)                \
	VADDPD       Y8, Y0, Y0         \
	VADDPD       Y9, Y1, Y1         \
skip:

// The sums Y0, Y1 of the row at R11 before column R10 over eight z at SI, whose columns are at DX.
#define DOT_EIGHT \
	MOVQ         R10, R12                             \
	ANDQ         $~31, R12                            \
	PARTIAL_SUM(24, R13, Y0, Y1, next0, end0)         \
	PARTIAL_SUM(48, R14, Y2, Y3, next1, end1)         \
	PARTIAL_SUM(72, R15, Y4, Y5, next2, end2)         \
	PARTIAL_SUM(96, BX, Y6, Y7, next3, end3)          \
	VADDPD       Y2, Y0, Y0                           \
	VADDPD       Y3, Y1, Y1                           \
	VADDPD       Y6, Y4, Y4                           \
	VADDPD       Y7, Y5, Y5                           \
	VADDPD       Y4, Y0, Y0                           \
	VADDPD       Y5, Y1, Y1                           \
	AND_COLUMN(R13, skip0)                            \
	AND_COLUMN(R14, skip1)                            \
	AND_COLUMN(R15, skip2)

// func dotEightAVX2(s *[8]float64, x []float64, ys [][8]float64, some *hashedColumns)
TEXT ·dotEightAVX2(SB), NOSPLIT, $0-64
	MOVQ x_base+8(FP), R11
	MOVQ x_len+16(FP), R10
	SHLQ $3, R10
	MOVQ ys_base+32(FP), SI
	MOVQ some+56(FP), DX
	DOT_EIGHT
	MOVQ    s+0(FP), DI
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	VZEROUPPER
	RET

// func formEightAVX2(s *[8]float64, p []float64, zs [][8]float64, some *hashedColumns)
TEXT ·formEightAVX2(SB), NOSPLIT, $0-64
	MOVQ   p_base+8(FP), R8
	MOVQ   zs_base+32(FP), SI
	MOVQ   some+56(FP), DX
	MOVQ   (DX), DI           // rows
	MOVQ   8(DX), CX
	LEAQ   (DI)(CX*4), CX
	VXORPD Y10, Y10, Y10      // s
	VXORPD Y11, Y11, Y11

rows:
	MOVLQZX (DI), R10        // i
	LEAQ    1(R10), R11
	IMULQ   R10, R11
	LEAQ    (R8)(R11*4), R11 // its row
	SHLQ    $3, R10
	DOT_EIGHT
	PRODUCTS(R10)
	VADDPD  Y0, Y0, Y0
	VADDPD  Y1, Y1, Y1
	VADDPD  Y8, Y0, Y0
	VADDPD  Y9, Y1, Y1
	VMULPD  (SI)(R10*8), Y0, Y0
	VMULPD  32(SI)(R10*8), Y1, Y1
	VADDPD  Y0, Y10, Y10
	VADDPD  Y1, Y11, Y11
	ADDQ    $4, DI
	CMPQ    DI, CX
	JLT     rows
	MOVQ    s+0(FP), DI
	VMOVUPD Y10, (DI)
	VMOVUPD Y11, 32(DI)
	VZEROUPPER
	RET
