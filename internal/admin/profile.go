package admin

import (
	"net/http"
	"net/http/pprof"

	"sluice"
)

// profile serves the runtime's own profiles, for `go tool pprof`: what the
// process spends its time and memory on. They hold names of functions and no
// data of a request. The command line, which net/http/pprof would serve too, is
// left out, since it names files.
func profile(w http.ResponseWriter, r *http.Request) {
	switch name := r.PathValue("profile"); name {
	case "profile":
		pprof.Profile(w, r)
	case "trace":
		pprof.Trace(w, r)
	case "allocs", "block", "goroutine", "heap", "mutex", "threadcreate":
		pprof.Handler(name).ServeHTTP(w, r)
	default:
		problemOf(&sluice.Error{
			Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: "there is no such profile",
			Hint: "profile, trace, heap, allocs, goroutine, block, mutex or threadcreate",
		}).write(w)
	}
}
