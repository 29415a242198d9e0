package dialect

import (
	"strings"
	"testing"
)

// What a request names by URL is asked for by the targets that take bytes, by its path,
// and sent by its bytes where it was fetched; where it was not, whatever the policy, the
// request is refused.
func TestMediaByURL(t *testing.T) {
	for _, p := range pairs() {
		from, to := p.client.codec, p.backend.codec
		for _, f := range []Feature{FeatureImageURL, FeatureDocumentURL} {
			eg, ok := p.client.examples[f]
			if !ok {
				continue
			}
			h, err := scan(from.op, []byte(eg.body))
			if err != nil {
				t.Fatal(err)
			}
			url, data := "https://a/b.png", "AAAA"
			if f == FeatureDocumentURL {
				url, data = "https://a/b.pdf", "BBBB"
			}
			wanted := Wants(h, []byte(eg.body), to.op)
			without := Translate(h, []byte(eg.body), nil, to.op, Options{Warn: true, MaxOutput: 9})
			with := Translate(h, []byte(eg.body), nil, to.op, Options{MaxOutput: 9, Media: got})
			if with.Err != nil || len(with.Report) > 0 {
				t.Errorf("%v, %s: %v, %v", p, f, with.Err, with.Report)
				continue
			}
			if to.carries[f] != byItsBytes {
				if len(wanted) > 0 || without.Err != nil || !strings.Contains(string(with.Body), url) {
					t.Errorf("%v, %s: wants %v, and is sent %s", p, f, wanted, with.Body)
				}
				continue
			}
			if want := (Wanted{eg.path, url, f == FeatureDocumentURL}); len(wanted) != 1 || wanted[0] != want {
				t.Errorf("%v, %s: wants %v, not %v", p, f, wanted, want)
			}
			if without.Err == nil || without.Err.Param != eg.path || !strings.Contains(without.Err.Hint, "fetch_media") {
				t.Errorf("%v, %s: not fetched, it is %v", p, f, without.Err)
			}
			if strings.Contains(string(with.Body), url) || !strings.Contains(string(with.Body), data) {
				t.Errorf("%v, %s: is sent %s", p, f, with.Body)
			}
		}
	}
}
