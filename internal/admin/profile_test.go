package admin

import "testing"

func TestProfiles(t *testing.T) {
	b := newBench(t)
	for path, want := range map[string]int{
		"/debug/pprof/heap?debug=1":      200,
		"/debug/pprof/goroutine?debug=1": 200,
		"/debug/pprof/cmdline":           404,
		"/debug/pprof/nothing":           404,
	} {
		if res := b.raw("GET", path, b.token, "", nil); res.StatusCode != want {
			t.Errorf("GET %s: got %d, want %d", path, res.StatusCode, want)
		}
		if res := b.raw("GET", path, "", "", nil); res.StatusCode != 401 {
			t.Errorf("GET %s without a token: got %d, want 401", path, res.StatusCode)
		}
	}
}
