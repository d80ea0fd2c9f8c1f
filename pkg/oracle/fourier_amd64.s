//go:build !purego

#include "textflag.h"

// The kernels of random features; see vector_amd64.s. Lengths are multiples of four.

// func addFourAVX2(dst []float64, w *[4][]float64, z *[4]float64)
TEXT ·addFourAVX2(SB), NOSPLIT, $0-40
	MOVQ         dst_base+0(FP), DI
	MOVQ         dst_len+8(FP), CX
	MOVQ         w+24(FP), SI
	MOVQ         z+32(FP), DX
	MOVQ         0(SI), R8
	MOVQ         24(SI), R9
	MOVQ         48(SI), R10
	MOVQ         72(SI), R11
	VBROADCASTSD 0(DX), Y12
	VBROADCASTSD 8(DX), Y13
	VBROADCASTSD 16(DX), Y14
	VBROADCASTSD 24(DX), Y15
	XORQ         AX, AX

group:
	CMPQ    AX, CX
	JGE     done
	VMULPD  (R8)(AX*8), Y12, Y1
	VMULPD  (R9)(AX*8), Y13, Y2
	VMULPD  (R10)(AX*8), Y14, Y3
	VMULPD  (R11)(AX*8), Y15, Y4
	VADDPD  Y2, Y1, Y1
	VADDPD  Y4, Y3, Y3
	VADDPD  Y3, Y1, Y1
	VADDPD  (DI)(AX*8), Y1, Y1
	VMOVUPD Y1, (DI)(AX*8)
	ADDQ    $4, AX
	JMP     group

done:
	VZEROUPPER
	RET

// func cosinesAVX2(dst, phase []float64, scale float64, c *[14][4]float64)
TEXT ·cosinesAVX2(SB), NOSPLIT, $0-64
	MOVQ         dst_base+0(FP), DI
	MOVQ         dst_len+8(FP), CX
	MOVQ         phase_base+24(FP), SI
	VBROADCASTSD scale+48(FP), Y15
	MOVQ         c+56(FP), DX
	VMOVUPD      0(DX), Y14           // ½
	VPCMPEQQ     Y13, Y13, Y13
	VPSRLQ       $1, Y13, Y13         // all bits but the sign
	VMOVUPD      32(DX), Y12          // ¼
	VMOVUPD      64(DX), Y11          // 2π
	VMOVUPD      96(DX), Y10          // √2
	VMOVUPD      128(DX), Y9          // the last coefficient
	XORQ         AX, AX

group:
	CMPQ     AX, CX
	JGE      done
	VMULPD   (DI)(AX*8), Y15, Y0
	VADDPD   (SI)(AX*8), Y0, Y0
	VADDPD   Y14, Y0, Y1
	VROUNDPD $9, Y1, Y1           // down
	VSUBPD   Y1, Y0, Y0
	VANDPD   Y13, Y0, Y0
	VSUBPD   Y0, Y12, Y0
	VMULPD   Y11, Y0, Y0          // x
	VMULPD   Y0, Y0, Y1           // x²
	VMULPD   Y9, Y1, Y2
	VADDPD   160(DX), Y2, Y2
	VMULPD   Y2, Y1, Y2
	VADDPD   192(DX), Y2, Y2
	VMULPD   Y2, Y1, Y2
	VADDPD   224(DX), Y2, Y2
	VMULPD   Y2, Y1, Y2
	VADDPD   256(DX), Y2, Y2
	VMULPD   Y2, Y1, Y2
	VADDPD   288(DX), Y2, Y2
	VMULPD   Y2, Y1, Y2
	VADDPD   320(DX), Y2, Y2
	VMULPD   Y2, Y1, Y2
	VADDPD   352(DX), Y2, Y2
	VMULPD   Y2, Y1, Y2
	VADDPD   384(DX), Y2, Y2
	VMULPD   Y2, Y1, Y2
	VADDPD   416(DX), Y2, Y2
	VMULPD   Y0, Y1, Y1           // x³
	VMULPD   Y2, Y1, Y1
	VADDPD   Y1, Y0, Y0
	VMULPD   Y10, Y0, Y0
	VMOVUPD  Y0, (DI)(AX*8)
	ADDQ     $4, AX
	JMP      group

done:
	VZEROUPPER
	RET
