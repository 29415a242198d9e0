package admin

import (
	"encoding/json"
	"net/http"
)

// readiness is the body of /readyz.
type readiness struct {
	State        string       `json:"state"`
	Dependencies []Dependency `json:"dependencies,omitempty"`
}

// livez answers as long as the process can answer at all.
func (a *API) livez(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}

// readyz says whether requests are admitted. Degraded is ready: what is lost is
// told per dependency with ?verbose. It names no address and no version, since
// anybody may read it.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) {
	run := a.runtime()
	out := readiness{State: stateOf(&run)}
	if r.URL.Query().Has("verbose") {
		for _, d := range run.Dependency {
			out.Dependencies = append(out.Dependencies, Dependency{Name: d.Name, State: d.State})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if !run.Ready || run.Draining {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(out)
}

// pointer tells a human at / where to go.
func pointer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("Sluice admin API.\n\nOpen: /livez /readyz\nWith an admin token: /openapi.json /metrics /debug/pprof/… /admin/v1/…\nFrom a shell: sluice status\n"))
}
