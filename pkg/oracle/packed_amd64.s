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

// func packedStepAVX2(s *[4]float64, dst, rows, k, z []float64, m *[8]float64)
//
// The first len(dst) columns of four rows, a multiple of four. Y0 holds their sums s, a
// lane a row, and takes products by columns, in ascending order; m is a·k and z of the
// four rows, which add to dst by pairs, as in Go.
TEXT ·packedStepAVX2(SB), NOSPLIT, $0-112
	MOVQ         dst_base+8(FP), DI
	MOVQ         dst_len+16(FP), BX
	MOVQ         rows_base+32(FP), R8
	MOVQ         k_base+56(FP), CX
	MOVQ         z_base+80(FP), SI
	MOVQ         m+104(FP), DX
	NEXT_ROWS(R8, BX)
	VBROADCASTSD 0(DX), Y8
	VBROADCASTSD 8(DX), Y9
	VBROADCASTSD 16(DX), Y10
	VBROADCASTSD 24(DX), Y11
	VBROADCASTSD 32(DX), Y12
	VBROADCASTSD 40(DX), Y13
	VBROADCASTSD 48(DX), Y14
	VBROADCASTSD 56(DX), Y15
	VXORPD       Y0, Y0, Y0
	XORQ         AX, AX                // j

block:
	CMPQ       AX, BX
	JGE        done
	LOAD_ROWS(R8, AX, Y1, Y2, Y3, Y4)
	VMOVUPD    (CX)(AX*8), Y7
	VMULPD     Y7, Y8, Y5
	VMULPD     Y7, Y9, Y6
	VSUBPD     Y5, Y1, Y1
	VSUBPD     Y6, Y2, Y2
	VMULPD     Y7, Y10, Y5
	VMULPD     Y7, Y11, Y6
	VSUBPD     Y5, Y3, Y3
	VSUBPD     Y6, Y4, Y4
	VMOVUPD    Y1, (R8)(AX*8)
	VMOVUPD    Y2, (R9)(AX*8)
	VMOVUPD    Y3, (R10)(AX*8)
	VMOVUPD    Y4, (R11)(AX*8)
	VMULPD     Y12, Y1, Y5
	VMULPD     Y13, Y2, Y6
	VADDPD     Y6, Y5, Y5
	VADDPD     (DI)(AX*8), Y5, Y5
	VMULPD     Y14, Y3, Y6
	VMULPD     Y15, Y4, Y7
	VADDPD     Y7, Y6, Y6
	VADDPD     Y6, Y5, Y5
	VMOVUPD    Y5, (DI)(AX*8)
	VMOVUPD    (SI)(AX*8), Y7
	VMULPD     Y7, Y1, Y1
	VMULPD     Y7, Y2, Y2
	VMULPD     Y7, Y3, Y3
	VMULPD     Y7, Y4, Y4
	VUNPCKLPD  Y2, Y1, Y5
	VUNPCKHPD  Y2, Y1, Y6
	VUNPCKLPD  Y4, Y3, Y1
	VUNPCKHPD  Y4, Y3, Y2
	VPERM2F128 $0x20, Y1, Y5, Y3
	VPERM2F128 $0x20, Y2, Y6, Y4
	VPERM2F128 $0x31, Y1, Y5, Y5
	VPERM2F128 $0x31, Y2, Y6, Y6
	VADDPD     Y3, Y0, Y0
	VADDPD     Y4, Y0, Y0
	VADDPD     Y5, Y0, Y0
	VADDPD     Y6, Y0, Y0
	ADDQ       $4, AX
	JMP        block

done:
	MOVQ    s+0(FP), DI
	VMOVUPD Y0, (DI)
	VZEROUPPER
	RET

// Four sums Y2 of a row at R11, a lane a z, over the first R9 columns of the list at DX. Those below R12 go to four
// sums each, in memory at R13, by the column modulo 4.
#define DOT_FOUR(whole, total, rest, end) \
	VXORPD       Y1, Y1, Y1         \
	VMOVUPD      Y1, (R13)          \
	VMOVUPD      Y1, 32(R13)        \
	VMOVUPD      Y1, 64(R13)        \
	VMOVUPD      Y1, 96(R13)        \
	XORQ         AX, AX             \
whole: \
	CMPQ         AX, R9             \
	JGE          total              \
	MOVLQZX      (DX)(AX*4), BX     \
	CMPQ         BX, R12            \
	JGE          total              \
	VBROADCASTSD (R11)(BX*8), Y2    \
	MOVQ         BX, DI             \
	ANDQ         $3, DI             \
	SHLQ         $5, DI             \
	SHLQ         $5, BX             \
	VMULPD       (SI)(BX*1), Y2, Y2 \
	VADDPD       (R13)(DI*1), Y2, Y2 \
	VMOVUPD      Y2, (R13)(DI*1)    \
	INCQ         AX                 \
	JMP          whole              \
total: \
	VMOVUPD      (R13), Y2          \
	VADDPD       32(R13), Y2, Y2    \
	VMOVUPD      64(R13), Y3        \
	VADDPD       96(R13), Y3, Y3    \
	VADDPD       Y3, Y2, Y2         \
rest: \
	CMPQ         AX, R9             \
	JGE          end                \
	MOVLQZX      (DX)(AX*4), BX     \
	VBROADCASTSD (R11)(BX*8), Y3    \
	SHLQ         $5, BX             \
	VMULPD       (SI)(BX*1), Y3, Y3 \
	VADDPD       Y3, Y2, Y2         \
	INCQ         AX                 \
	JMP          rest

// func dotFourAVX2(s *[4]float64, x []float64, ys [][4]float64, at []int32)
TEXT ·dotFourAVX2(SB), NOSPLIT, $128-80
	MOVQ x_base+8(FP), R11
	MOVQ x_len+16(FP), R12
	ANDQ $~3, R12
	MOVQ ys_base+32(FP), SI
	MOVQ at_base+56(FP), DX
	MOVQ at_len+64(FP), R9
	LEAQ sums-128(SP), R13
	DOT_FOUR(whole, total, rest, done)

done:
	MOVQ    s+0(FP), DI
	VMOVUPD Y2, (DI)
	VZEROUPPER
	RET

// func formFourAVX2(s *[4]float64, p []float64, zs [][4]float64, at []int32)
TEXT ·formFourAVX2(SB), NOSPLIT, $128-80
	MOVQ   p_base+8(FP), R8
	MOVQ   zs_base+32(FP), SI
	MOVQ   at_base+56(FP), DX
	MOVQ   at_len+64(FP), CX
	LEAQ   sums-128(SP), R13
	VXORPD Y0, Y0, Y0         // s
	XORQ   R9, R9             // n

rows:
	CMPQ    R9, CX
	JGE     done
	MOVLQZX (DX)(R9*4), R10  // i
	LEAQ    1(R10), R11
	IMULQ   R10, R11
	LEAQ    (R8)(R11*4), R11 // its row
	MOVQ    R10, R12
	ANDQ    $~3, R12
	DOT_FOUR(whole, total, rest, diagonal)

diagonal:
	VBROADCASTSD (R11)(R10*8), Y3
	SHLQ         $5, R10
	VMOVUPD      (SI)(R10*1), Y4
	VMULPD       Y4, Y3, Y3
	VADDPD       Y2, Y2, Y2
	VADDPD       Y3, Y2, Y2
	VMULPD       Y4, Y2, Y2
	VADDPD       Y2, Y0, Y0
	INCQ         R9
	JMP          rows

done:
	MOVQ    s+0(FP), DI
	VMOVUPD Y0, (DI)
	VZEROUPPER
	RET
