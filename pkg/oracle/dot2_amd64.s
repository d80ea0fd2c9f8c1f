#include "textflag.h"

// func dotPair(p, q, y *float64, groups int) (s, t float64)
//
// X0 = (s0, s1), X1 = (s2, s3) of p·y, X2 and X3 those of q·y.
TEXT ·dotPair(SB), NOSPLIT, $0-48
	MOVQ  p+0(FP), SI
	MOVQ  q+8(FP), DI
	MOVQ  y+16(FP), DX
	MOVQ  groups+24(FP), CX
	XORPS X0, X0
	XORPS X1, X1
	XORPS X2, X2
	XORPS X3, X3
	TESTQ CX, CX
	JEQ   done

loop:
	MOVUPD (DX), X4
	MOVUPD 16(DX), X5
	MOVUPD (SI), X6
	MOVUPD 16(SI), X7
	MOVUPD (DI), X8
	MOVUPD 16(DI), X9
	MULPD  X4, X6
	MULPD  X5, X7
	MULPD  X4, X8
	MULPD  X5, X9
	ADDPD  X6, X0
	ADDPD  X7, X1
	ADDPD  X8, X2
	ADDPD  X9, X3
	ADDQ   $32, SI
	ADDQ   $32, DI
	ADDQ   $32, DX
	DECQ   CX
	JNE    loop

done:
	// (s0+s1) + (s2+s3)
	MOVAPD   X0, X4
	UNPCKHPD X4, X4
	ADDSD    X4, X0
	MOVAPD   X1, X5
	UNPCKHPD X5, X5
	ADDSD    X5, X1
	ADDSD    X1, X0
	MOVAPD   X2, X6
	UNPCKHPD X6, X6
	ADDSD    X6, X2
	MOVAPD   X3, X7
	UNPCKHPD X7, X7
	ADDSD    X7, X3
	ADDSD    X3, X2
	MOVSD    X0, s+32(FP)
	MOVSD    X2, t+40(FP)
	RET
