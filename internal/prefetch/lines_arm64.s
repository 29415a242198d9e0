#include "textflag.h"

// func lines(at, n uintptr)
TEXT ·lines(SB), NOSPLIT, $0-16
	MOVD at+0(FP), R0
	MOVD n+8(FP), R1
	ADD R0, R1
	AND $~63, R0
next:
	PRFM (R0), PLDL1KEEP
	ADD $64, R0
	CMP R1, R0
	BLO next
	RET
