#include "textflag.h"

// func lines(at, n uintptr)
TEXT ·lines(SB), NOSPLIT, $0-16
	MOVQ at+0(FP), AX
	MOVQ n+8(FP), BX
	ADDQ AX, BX
	ANDQ $~63, AX
next:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	CMPQ AX, BX
	JCS next
	RET
