package egress

import (
	"net"
	"strings"
	"testing"
)

func TestRest(t *testing.T) {
	for n := range 7 {
		got := rest(net.Buffers{[]byte("ab"), nil, []byte("cde"), []byte("f")}, n)
		var text strings.Builder
		for _, p := range got {
			text.Write(p)
		}
		if text.String() != "abcdef"[n:] {
			t.Errorf("%d: got %q", n, text.String())
		}
	}
}
