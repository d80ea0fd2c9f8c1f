//go:build !purego

#include "textflag.h"

// AVX2 forms of kernels in vector.go, here and in packed_amd64.s. A lane does what one
// scalar of the Go code does, in its order; products are rounded before they are added
// (no FMA). Nothing is read or written beyond the slices.

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
