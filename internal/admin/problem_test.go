package admin

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// A body that is called something else than JSON, as curl -d calls every body, is refused
// with the header that mends it, and nothing of it is done.
func TestBodyOfAnotherType(t *testing.T) {
	b := newBench(t)
	for _, kind := range []string{"application/x-www-form-urlencoded", "text/plain", "text/html; charset=utf-8"} {
		r := httptest.NewRequest("POST", "/admin/v1/plans", strings.NewReader(`{"id":"curled"}`))
		r.Header.Set("Authorization", "Bearer "+b.token)
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		b.api.ServeHTTP(w, r)
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 415 || p.Param != "content-type" || p.Detail == "" || !strings.Contains(p.Hint, "-H 'Content-Type: application/json'") {
			t.Errorf("%s: %d %s, %v", kind, w.Code, w.Body, err)
		}
	}
	b.do("GET", "/admin/v1/plans/curled", "", 404, nil)
}
