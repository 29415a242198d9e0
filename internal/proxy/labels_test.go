package proxy

import (
	"strings"
	"testing"

	"sluice"
)

func TestLabels(t *testing.T) {
	got, err := parseLabels("feature=chat, prompt_version=v3")
	if err != nil || len(got) != 2 || got[1] != (sluice.Label{Key: "prompt_version", Value: "v3"}) {
		t.Errorf("labels %v, %v", got, err)
	}
	for _, bad := range []string{"a", "=b", "a=b,,", "a=B", "a=b,a=b", "a=b, c=d, a=e", strings.Repeat("a=b,", 9) + "c=d"} {
		if _, err := parseLabels(bad); err == nil {
			t.Errorf("%q gave no error", bad)
		}
	}
}
