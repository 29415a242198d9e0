package batch

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/jobs"
)

// Whatever id a stranger writes, it gets what an id that was never given gets: another
// tenant's, another project's and another kind's are unknown, and what they name is
// unchanged.
func TestTenantsAreWalls(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	f := r.upload(acme, chat("a", "hi"))
	b := as[batch](t, r.do(acme, "POST", "/v1/batches", create(f.ID, "")), 200)
	m := as[messageBatch](t, r.do(acme, "POST", "/v1/messages/batches", messages(message("a", "hi"))), 200)
	b, m = r.finished(acme, b.ID), r.endedMessages("/v1/messages/batches/"+string(m.ID))
	at := r.later("hi")
	r.until("it is answered", func() bool { return r.do(acme, "GET", at, nil).status == 200 })
	own := []string{string(f.ID), *b.Output, string(b.ID), string(m.ID), strings.TrimPrefix(at, answerPath)}

	routes := []struct{ method, before, after string }{
		{"GET", "/v1/files/", ""},
		{"GET", "/v1/files/", "/content"},
		{"DELETE", "/v1/files/", ""},
		{"GET", "/v1/batches/", ""},
		{"POST", "/v1/batches/", "/cancel"},
		{"GET", "/v1/messages/batches/", ""},
		{"GET", "/v1/messages/batches/", "/results"},
		{"POST", "/v1/messages/batches/", "/cancel"},
		{"DELETE", "/v1/messages/batches/", ""},
		{"GET", answerPath, ""},
		{"DELETE", answerPath, ""},
	}
	unknown := map[string]string{} // what a stranger gets for an id that was never given
	for _, x := range routes {
		unknown[x.method+x.before+x.after] = r.do("nobody/web", x.method, x.before+"file-00000000000000000000000000000000"+x.after, nil).body
	}
	input := r.do("nobody/web", "POST", "/v1/batches", create("file-00000000000000000000000000000000", "")).body
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.OneOf(
			rapid.SampledFrom(own),
			rapid.Custom(func(rt *rapid.T) string { // nearly one of those
				b := []byte(rapid.SampledFrom(own).Draw(rt, "near"))
				b[rapid.IntRange(0, len(b)-1).Draw(rt, "at")] = rapid.SampledFrom([]byte("0aZ-_.%")).Draw(rt, "byte")
				return strings.ReplaceAll(string(b), "%", "%00")
			}),
			rapid.StringMatching(`[a-zA-Z0-9_-]{1,100}`),
		).Draw(rt, "id")
		who := rapid.SampledFrom([]string{"acme/other", "other/web", "nobody/web"}).Draw(rt, "who")
		x := rapid.SampledFrom(routes).Draw(rt, "route")
		if g := r.do(who, x.method, x.before+id+x.after, nil); g.status != 404 || g.body != unknown[x.method+x.before+x.after] {
			rt.Fatalf("%s %s%s%s as %s: got %d %s", x.method, x.before, id, x.after, who, g.status, g.body)
		}
		if strings.Contains(id, "%") {
			return
		}
		if g := r.do(who, "POST", "/v1/batches", create(jobs.FileID(id), "")); g.status != 404 || g.body != input {
			rt.Fatalf("a batch of %s as %s: got %d %s", id, who, g.status, g.body)
		}
		for _, list := range []string{"/v1/files?after=", "/v1/batches?after=", "/v1/messages/batches?after_id=", "/v1/messages/batches?before_id="} {
			if g := r.do(who, "GET", list+id, nil); g.status != 404 && g.status != 400 {
				rt.Fatalf("%s%s as %s: got %d %s", list, id, who, g.status, g.body)
			}
		}
	})
	for _, who := range []string{"acme/other", "other/web"} {
		for _, path := range []string{"/v1/files", "/v1/batches", "/v1/messages/batches"} {
			if g := r.do(who, "GET", path, nil); !strings.Contains(g.body, `"data":[]`) {
				t.Errorf("%s lists %s", who, g.body)
			}
		}
	}
	for _, path := range []string{"/v1/files/" + own[0], "/v1/files/" + own[1] + "/content", "/v1/batches/" + own[2], "/v1/messages/batches/" + own[3] + "/results", at} {
		if g := r.do(acme, "GET", path, nil); g.status != 200 {
			t.Errorf("%s: its owner gets %d %s", path, g.status, g.body)
		}
	}
}
