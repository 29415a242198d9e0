package app

import (
	"net/http"
	"strings"
	"testing"
)

// Runs and users survive a restart: what they took before is seeded from the ledger.
func TestRunsAndUsersSurviveRestart(t *testing.T) {
	b := newBench(t)
	b.write(strings.Replace(plainFile, "daily: {", "daily: {per_run: {steps: 3, time: 1h}, per_user: {requests_per_day: 4}, ", 1))
	b.start()
	step := func() (int, http.Header, string) {
		b.t.Helper()
		req, err := http.NewRequestWithContext(b.t.Context(), "POST", "http://"+b.app.Addr()+"/v1/chat/completions",
			strings.NewReader(`{"model":"sim-small","max_tokens":2,"user":"eve","messages":[{"role":"user","content":"hello [[tokens=2]]"}]}`))
		if err != nil {
			b.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+b.key)
		req.Header.Set("Sluice-Run", "errand-1")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			b.t.Fatal(err)
		}
		defer res.Body.Close()
		text := new(strings.Builder)
		if err := res.Write(text); err != nil {
			b.t.Fatal(err)
		}
		return res.StatusCode, res.Header, text.String()
	}
	for range 2 {
		if status, _, body := step(); status != 200 {
			t.Fatalf("got %d %s", status, body)
		}
	}
	b.stop()
	b.start()
	if status, _, body := step(); status != 200 {
		t.Fatalf("the third step: got %d %s", status, body)
	}
	status, h, body := step()
	if status != 429 || h.Get("sluice-reason") != "budget_spent" || !strings.Contains(body, "3 steps, of which 3 are spent") {
		t.Errorf("the fourth step: got %d %q %s", status, h.Get("sluice-reason"), body)
	}
	if _, _, body := step(); strings.Contains(body, "user eve") {
		t.Errorf("the user has one request left: %s", body)
	}
	b.do("POST", "http://"+b.app.Addr()+"/v1/chat/completions", b.key, `{"model":"sim-small","max_tokens":2,"user":"eve","messages":[{"role":"user","content":"hi [[tokens=2]]"}]}`)
	if status, _, body := b.do("POST", "http://"+b.app.Addr()+"/v1/chat/completions", b.key, `{"model":"sim-small","max_tokens":2,"user":"eve","messages":[{"role":"user","content":"hi [[tokens=2]]"}]}`); status != 429 || !strings.Contains(body, "limit of user eve") {
		t.Errorf("the user's fifth request of the day: got %d %s", status, body)
	}
}
