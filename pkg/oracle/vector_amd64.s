//go:build !purego

#include "textflag.h"

// AVX2 forms of the kernels in vector.go. A lane does what one scalar of the Go code
// does, in its order; products are rounded before they are added (no FMA). Nothing is
// read or written beyond the slices.

// func dot4AVX2(s *[4]float64, p *[4][]float64, y []float64)
//
// Y0..Y3 = (s0, s1, s2, s3) of the four rows.
TEXT ·dot4AVX2(SB), NOSPLIT, $0-40
	MOVQ   s+0(FP), DI
	MOVQ   p+8(FP), SI
	MOVQ   y_base+16(FP), DX
	MOVQ   y_len+24(FP), CX
	MOVQ   0(SI), R8
	MOVQ   24(SI), R9
	MOVQ   48(SI), R10
	MOVQ   72(SI), R11
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	VXORPD Y2, Y2, Y2
	VXORPD Y3, Y3, Y3
	XORQ   AX, AX
	MOVQ   CX, BX
	ANDQ   $~3, BX
	JEQ    sum

group:
	VMOVUPD (DX)(AX*8), Y4
	VMULPD  (R8)(AX*8), Y4, Y5
	VMULPD  (R9)(AX*8), Y4, Y6
	VMULPD  (R10)(AX*8), Y4, Y7
	VMULPD  (R11)(AX*8), Y4, Y8
	VADDPD  Y5, Y0, Y0
	VADDPD  Y6, Y1, Y1
	VADDPD  Y7, Y2, Y2
	VADDPD  Y8, Y3, Y3
	ADDQ    $4, AX
	CMPQ    AX, BX
	JLT     group

sum:
	// Y0 = (s0+s1) + (s2+s3), a lane a row.
	VHADDPD    Y1, Y0, Y0
	VHADDPD    Y3, Y2, Y2
	VPERM2F128 $0x20, Y2, Y0, Y1
	VPERM2F128 $0x31, Y2, Y0, Y3
	VADDPD     Y3, Y1, Y0

rest:
	CMPQ         AX, CX
	JGE          done
	VMOVSD       (R8)(AX*8), X1
	VMOVHPD      (R9)(AX*8), X1, X1
	VMOVSD       (R10)(AX*8), X2
	VMOVHPD      (R11)(AX*8), X2, X2
	VINSERTF128  $1, X2, Y1, Y1
	VBROADCASTSD (DX)(AX*8), Y4
	VMULPD       Y4, Y1, Y1
	VADDPD       Y1, Y0, Y0
	INCQ         AX
	JMP          rest

done:
	VMOVUPD Y0, (DI)
	VZEROUPPER
	RET

// func packedOuterAVX2(dst, z []float64)
TEXT ·packedOuterAVX2(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ z_base+24(FP), SI
	MOVQ z_len+32(FP), CX
	XORQ R8, R8             // i

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
TEXT ·packedRankOneAVX2(SB), NOSPLIT, $0-56
	MOVQ   p_base+0(FP), DI
	VMOVSD c+24(FP), X3
	MOVQ   k_base+32(FP), SI
	MOVQ   k_len+40(FP), CX
	XORQ   R8, R8            // i, below i+1

row:
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
	LEAQ         8(R8)(BX*8), R9   // row i+1, i+2, i+3
	LEAQ         16(R9)(BX*8), R10
	LEAQ         24(R10)(BX*8), R11
	VBROADCASTSD (SI)(BX*8), Y12
	VBROADCASTSD 8(SI)(BX*8), Y13
	VBROADCASTSD 16(SI)(BX*8), Y14
	VBROADCASTSD 24(SI)(BX*8), Y15
	VXORPD       Y0, Y0, Y0
	XORQ         AX, AX            // j

block:
	CMPQ         AX, BX
	JGE          diagonal
	VMOVUPD      (R8)(AX*8), Y1
	VMOVUPD      (R9)(AX*8), Y2
	VMOVUPD      (R10)(AX*8), Y3
	VMOVUPD      (R11)(AX*8), Y4
	VMULPD       Y12, Y1, Y5
	VMULPD       Y13, Y2, Y6
	VMULPD       Y14, Y3, Y7
	VMULPD       Y15, Y4, Y8
	VADDPD       (DI)(AX*8), Y5, Y5
	VADDPD       Y6, Y5, Y5
	VADDPD       Y7, Y5, Y5
	VADDPD       Y8, Y5, Y5
	VMOVUPD      Y5, (DI)(AX*8)
	VUNPCKLPD    Y2, Y1, Y5
	VUNPCKHPD    Y2, Y1, Y6
	VUNPCKLPD    Y4, Y3, Y7
	VUNPCKHPD    Y4, Y3, Y8
	VPERM2F128   $0x20, Y7, Y5, Y1
	VPERM2F128   $0x20, Y8, Y6, Y2
	VPERM2F128   $0x31, Y7, Y5, Y3
	VPERM2F128   $0x31, Y8, Y6, Y4
	VBROADCASTSD (SI)(AX*8), Y5
	VBROADCASTSD 8(SI)(AX*8), Y6
	VBROADCASTSD 16(SI)(AX*8), Y7
	VBROADCASTSD 24(SI)(AX*8), Y8
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
	VMOVUPD    (R8)(BX*8), Y1
	VMOVUPD    (R9)(BX*8), Y2
	VMOVUPD    (R10)(BX*8), Y3
	VMOVUPD    (R11)(BX*8), Y4
	VUNPCKLPD  Y2, Y1, Y5
	VUNPCKHPD  Y2, Y1, Y6
	VUNPCKLPD  Y4, Y3, Y7
	VUNPCKHPD  Y4, Y3, Y8
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

// func hasAVX2() bool
TEXT ·hasAVX2(SB), NOSPLIT, $0-1
	MOVB   $0, ret+0(FP)
	XORL   AX, AX
	CPUID
	CMPL   AX, $7
	JLT    no
	MOVL   $1, AX
	XORL   CX, CX
	CPUID
	ANDL   $(1<<27 | 1<<28), CX // OSXSAVE, AVX
	CMPL   CX, $(1<<27 | 1<<28)
	JNE    no
	XORL   CX, CX
	XGETBV
	ANDL   $6, AX               // XMM and YMM are saved
	CMPL   AX, $6
	JNE    no
	MOVL   $7, AX
	XORL   CX, CX
	CPUID
	SHRL   $5, BX
	ANDL   $1, BX
	MOVB   BX, ret+0(FP)

no:
	RET
